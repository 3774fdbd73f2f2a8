import { expect } from 'chai';
import { v7 } from 'uuid';
import { LogsGone, type LogLine } from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { eventually } from '../support/harness/eventually.ts';
import { Following } from '../support/harness/log-following.ts';
import { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { printingProgram } from '../support/cluster/real-pods.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';

const request = { tailLines: 10, limitBytes: 1 << 20 };
const texts = (lines: readonly LogLine[]): readonly string[] =>
  lines.map(({ text }) => String(text));
/** In bytes, as the kubelet is told in local-cluster/real-node.ts. */
const ROTATED_AT = 256 << 10;

describe('the log of a Pod on a real node', function () {
  const cluster = onTheRealNode();
  let under: PodStreamsUnderTest;
  let direct: PodStreamsUnderTest;
  let pod: PodTarget;
  let pods = 0;

  before(async () => {
    under = await PodStreamsUnderTest.start(cluster(), {
      silenceMs: 1_000,
      program: printingProgram,
    });
    direct = await PodStreamsUnderTest.start(cluster(), { direct: true });
  });
  after(async () => {
    await under.close();
    await direct.close();
  });
  beforeEach(async () => {
    pod = await under.pod(`printing-${(pods += 1)}`);
  });

  const print = async (...lines: readonly string[]): Promise<void> => {
    const outcome = await direct.exec(pod, ['sh', '-c', 'cat >>/tmp/printed'], {
      stdin: lines.map((line) => `${line}\n`).join(''),
    });
    expect(outcome.exitCode, String(outcome.stderr)).to.equal(0);
  };
  it('is followed through broken links and a restart of the kubelet, without lost or repeated lines', async () => {
    const following = new Following(under, pod, '0');
    const wanted: string[] = [];
    const more = async (): Promise<void> => {
      const lines = Array.from({ length: 40 }, () => `line ${wanted.length} ${v7()}`);
      wanted.push(...lines);
      await print(...lines);
      await following.until(lines.at(-1) ?? '');
    };
    await more();
    under.proxy.cut();
    await more();
    await cluster().realNode.kill('kubelet');
    await cluster().realNode.begin('kubelet');
    await eventually(
      () =>
        direct.exec(pod, ['true']).then(
          () => true,
          () => false,
        ),
      'the kubelet answers',
    );
    await more();
    await following.stop();
    expect(texts(following.lines)).to.deep.equal(wanted);
  });

  it('is followed over rotations, without lost or repeated lines', async () => {
    const following = new Following(under, pod, '0');
    const wanted: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      const lines = Array.from(
        { length: 150 },
        (_, n) => `${round} ${n} ${'z'.repeat(ROTATED_AT / 100)}`,
      );
      wanted.push(...lines);
      await print(...lines);
      await following.until(lines.at(-1) ?? '');
      await eventually(() => rotations() >= Math.min(round + 1, 2), 'the log was rotated');
    }
    await following.stop();
    expect(following.lines.map(({ text }) => String(text).slice(0, 8))).to.deep.equal(
      wanted.map((line) => line.slice(0, 8)),
    );
  });

  it('ends with its Pod, and is gone then', async () => {
    const following = new Following(under, pod, '0');
    await print('last words');
    await following.until('last words');
    await under.remove(pod);
    under.streams.gone(pod.uid);
    await following.over;
    expect(texts(following.lines)).to.deep.equal(['last words']);
    expect(await rejection(under.streams.logs(pod, request))).to.be.instanceOf(LogsGone);
  });

  const rotations = (): number => cluster().realNode.logFiles(pod).length - 1;
});

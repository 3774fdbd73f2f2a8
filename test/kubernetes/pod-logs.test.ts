import v8 from 'node:v8';
import vm from 'node:vm';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { LogsGone, NotJoinable, type LogLine } from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { eventually } from '../support/harness/eventually.ts';
import { Following } from '../support/harness/log-following.ts';
import { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

const request = { tailLines: 10, limitBytes: 1 << 20 };
const texts = (lines: readonly LogLine[]): readonly string[] =>
  lines.map(({ text }) => String(text));

v8.setFlagsFromString('--expose-gc');
const collectGarbage = vm.runInNewContext('gc') as () => void;
/** Of buffers that somebody holds. */
const heldBytes = (): number => {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
};

describe('the log of a Pod', function () {
  const controlPlane = onTheControlPlane();
  let under: PodStreamsUnderTest;
  let pod: PodTarget;

  before(async () => {
    under = await PodStreamsUnderTest.start(controlPlane(), { silenceMs: 1_000 });
    pod = await under.pod('main');
  });
  after(() => under.close());

  const print = (...lines: readonly string[]): void => {
    for (const line of lines) controlPlane().print(line);
  };
  /** Of the log that all containers here share: where it ends now. */
  const end = async (): Promise<string> => (await under.streams.logs(pod, request)).next;

  it('returns the last lines, and reports older ones', async () => {
    print('one', 'two', 'three');
    const { lines, truncated } = await under.streams.logs(pod, { ...request, tailLines: 2 });
    expect(texts(lines)).to.deep.equal(['two', 'three']);
    expect(truncated).to.equal(true);
    expect(lines[0]?.time).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
  });

  it('returns nothing printed before a time, to the millisecond', async () => {
    print('before');
    const since = Date.parse((await under.streams.logs(pod, request)).lines.at(-1)?.time ?? '') + 1;
    const nothing = await under.streams.logs(pod, { ...request, since });
    expect(nothing).to.deep.include({ lines: [], truncated: false });
    await eventually(() => Date.now() > since, 'a millisecond passed');
    print('after');
    expect(texts((await under.streams.logs(pod, { ...request, since })).lines)).to.deep.equal([
      'after',
    ]);
    const following = new Following(under, pod, nothing.next);
    await following.until('after');
    await following.stop();
    expect(texts(following.lines)).to.deep.equal(['after']);
  });

  it('returns the end of a log that exceeds the limit', async () => {
    print('x'.repeat(5_000), 'y'.repeat(300));
    const { lines, truncated } = await under.streams.logs(pod, { ...request, limitBytes: 200 });
    expect(texts(lines)).to.deep.equal(['y'.repeat(200)]);
    expect(truncated).to.equal(true);
  });

  it('is followed from its end, even if many lines share the last timestamp', async () => {
    const time = new Date();
    const lines = Array.from({ length: 9 }, () => v7());
    for (const line of lines) controlPlane().print(line, { time });
    const { lines: last, next } = await under.streams.logs(pod, { ...request, tailLines: 2 });
    const following = new Following(under, pod, next);
    controlPlane().print('after them', { time });
    await following.until('after them');
    await following.stop();
    expect(texts(last)).to.deep.equal(lines.slice(-2));
    expect(texts(following.lines)).to.deep.equal(['after them']);
  });

  it('is followed from any position', async () => {
    const from = await end();
    print('a', 'b', 'c');
    const following = new Following(under, pod, from);
    await following.until('c');
    print('d');
    await following.until('d');
    await following.stop();
    expect(texts(following.lines)).to.deep.equal(['a', 'b', 'c', 'd']);
    const later = new Following(under, pod, following.lines[1]?.next ?? '');
    await later.until('d');
    await later.stop();
    expect(texts(later.lines)).to.deep.equal(['c', 'd']);
  });

  it('is followed through broken, silent and hanging connections without lost or repeated lines', async () => {
    const following = new Following(under, pod, await end());
    const wanted: string[] = [];
    const more = async (): Promise<void> => {
      const lines = Array.from({ length: 40 }, () => `line ${wanted.length} ${v7()}`);
      print(...lines);
      wanted.push(...lines);
      await following.until(lines.at(-1) ?? '');
    };
    await more();
    for (let round = 0; round < 5; round += 1) {
      under.proxy.cut();
      await more();
    }
    under.proxy.state = 'hold';
    setTimeout(() => {
      under.proxy.state = 'pass';
    }, 1_500);
    await more();
    under.proxy.state = 'cut-answers';
    print('while it was away');
    wanted.push('while it was away');
    setTimeout(() => {
      under.proxy.state = 'pass';
    }, 700);
    await more();
    await following.stop();
    expect(texts(following.lines)).to.deep.equal(wanted);
  });

  it('waits for a slow follower', async () => {
    const direct = await PodStreamsUnderTest.start(controlPlane(), { direct: true });
    const own = await direct.pod('main');
    const from = (await direct.streams.logs(own, request)).next;
    const line = 'z'.repeat(1 << 20);
    for (let i = 0; i < 60; i += 1) print(line);
    print('the end');
    const before = heldBytes();
    let size = 0;
    let held = 0;
    for await (const { lines } of direct.streams.followLogs(
      own,
      from,
      new AbortController().signal,
    )) {
      const wasAt = size >> 22;
      size += lines.reduce((sum, { text }) => sum + text.length, 0);
      if (size >> 22 !== wasAt) held = Math.max(held, heldBytes() - before);
      if (lines.some(({ text }) => String(text) === 'the end')) break;
    }
    expect(size).to.equal(60 * line.length + 7);
    expect(held).to.be.lessThan(30 << 20);
    await direct.close();
    // A kubelet that looks through so much for what is new may take longer than a link may be silent.
    controlPlane().forgetPrinted();
  });

  it('ends with its Pod, and is gone then', async () => {
    const brief = await under.pod('brief');
    const following = new Following(under, brief, await end());
    print('last words');
    await following.until('last words');
    await under.remove(brief);
    under.streams.gone(brief.uid);
    await following.over;
    expect(texts(following.lines)).to.deep.equal(['last words']);
    expect(await rejection(under.streams.logs(brief, request))).to.be.instanceOf(LogsGone);
    expect(
      await rejection(new Following(under, brief, '0').over as Promise<never>),
    ).to.be.instanceOf(LogsGone);
    expect(await rejection(under.streams.logs({ ...pod, uid: v7() }, request))).to.be.instanceOf(
      LogsGone,
    );
  });

  it('reports an error if it cannot be read while the API server does not answer', async () => {
    under.proxy.state = 'cut-answers';
    expect(await rejection(under.streams.logs(pod, request))).to.be.instanceOf(NotJoinable);
    under.proxy.state = 'pass';
  });
});

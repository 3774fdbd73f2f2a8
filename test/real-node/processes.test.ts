import { expect } from 'chai';
import { v7 } from 'uuid';
import { realNodeImage } from '../../local-cluster/real-node.ts';
import { AGENT } from '../../src/k8s/sandboxes/pods/pod-agent.ts';
import { processesSuite } from '../contracts/processes.ts';
import { onRealPods, realOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { OutputReading } from '../support/harness/output-reading.ts';
import { sampled } from '../support/harness/sampled.ts';

/** 64 processes, with a holder each. */
const ROOMY = { cpuCores: 2, memoryBytes: 512 * 2 ** 20 };

describe('on a real node', () => {
  const cluster = onTheRealNode();
  const pods = onRealPods(cluster);

  for (const image of ['busybox', 'tools'] as const)
    sampled(() => {
      processesSuite(`Pods of ${image}`, () =>
        Promise.resolve({
          processes: pods().driver.processes,
          instance: async () =>
            (await pods().claimed(realOrder(pods(), { image: realNodeImage(image), ...ROOMY }))).id,
          close: () => Promise.resolve(),
        }),
      );
    });

  it('starts processes in an image that contains just a program', async () => {
    const pause = realOrder(pods(), { image: realNodeImage('pause'), given: { command: [] } });
    const { id } = await pods().claimed(pause);
    const { processes } = pods().driver;
    const order = { tenant: 't', argv: ['/pause'], stdin: false };
    const tty = { cols: 80, rows: 24 };
    const processId = v7();
    expect(await processes.start(id, { ...order, processId })).to.include({ status: 'Running' });
    expect(await processes.start(id, { ...order, processId: v7(), tty })).to.include({ tty: true });
    await processes.signal(id, processId, 'KILL');
    const reading = new OutputReading((signal) =>
      processes.output(id, processId, { pace: false, signal }),
    );
    expect(await reading.end()).to.include({ signal: 'KILL' });
    expect(await processes.list(id)).to.have.length(2);
    const command = { argv: [AGENT], cwd: '/', env: { A: 'b' } };
    const terms = { timeoutMs: NEVER_COMES_MS, outputLimit: 1_000 };
    const outcome = await pods().driver.exec(
      id,
      { ...command, ...terms },
      new AbortController().signal,
    );
    expect(String(outcome.stderr)).to.include('called as');
  });
});

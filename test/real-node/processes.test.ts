import { expect } from 'chai';
import { v7 } from 'uuid';
import { realNodeImage } from '../../local-cluster/real-node.ts';
import { ProcessesNotProvided, ProcessRefused } from '../../src/contracts/processes.ts';
import { processesSuite } from '../contracts/processes.ts';
import { onRealPods, realOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { rejection } from '../support/harness/rejection.ts';
import { sampled } from '../support/harness/sampled.ts';

/** 64 processes, with a shell and two movers each. */
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
          withoutTerminal: image === 'busybox' ? 'its image has no program "script"' : undefined,
          close: () => Promise.resolve(),
        }),
      );
    });

  it('says which program an image lacks for a terminal, and that one has no shell', async function () {
    const order = { processId: v7(), tenant: 't', argv: ['true'], stdin: false };
    const { id } = await pods().claimed(realOrder(pods()));
    const { processes } = pods().driver;

    const refused = await rejection(processes.start(id, { ...order, tty: { cols: 80, rows: 24 } }));
    expect(refused)
      .to.be.instanceOf(ProcessRefused)
      .with.property('message')
      .that.includes('script');

    const pause = realOrder(pods(), { image: realNodeImage('pause'), given: { command: [] } });
    const bare = await pods().claimed(pause);
    for (const call of [() => processes.start(bare.id, order), () => processes.list(bare.id)])
      expect(await rejection(call()))
        .to.be.instanceOf(ProcessesNotProvided)
        .with.property('message')
        .that.includes('/bin/sh');
  });
});

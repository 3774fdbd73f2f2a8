import { v7 } from 'uuid';
import { realNodeImage } from '../../local-cluster/real-node.ts';
import { filesSuite } from '../contracts/files/files.ts';
import { onRealPods, realOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
describe('on a real node', () => {
  const cluster = onTheRealNode();
  const pods = onRealPods(cluster);

  for (const image of ['busybox', 'tools'] as const)
    sampled(() => {
      filesSuite(`Pods of ${image}`, async () => {
        const { driver } = pods();
        const order = realOrder(pods(), {
          image: realNodeImage(image),
          cpuCores: 2,
          memoryBytes: 512 * 2 ** 20,
        });
        const { id } = await pods().claimed(order);
        const sh = async (script: string): Promise<string> => {
          const request = {
            argv: ['/bin/sh', '-c', script],
            timeoutMs: NEVER_COMES_MS,
            outputLimit: 1 << 20,
          };
          return String((await driver.exec(id, request, new AbortController().signal)).stdout);
        };
        await sh('mkdir /tmp/of');
        return {
          files: driver.files,
          id,
          folder: '/tmp/of',
          keepsMetadata: false,
          // Of 64 MiB, as containerd makes it.
          smallFolder: '/dev/shm',
          sh,
          unknownId: v7(),
          close: () => Promise.resolve(),
        };
      });
    });
});

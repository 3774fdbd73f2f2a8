import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { realNodeImage } from '../../local-cluster/real-node.ts';
import { filesSuite } from '../contracts/files/files.ts';
import { problemOf } from '../contracts/files/place.ts';
import { onRealPods, realOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
describe('on a real node', () => {
  const cluster = onTheRealNode();
  const pods = onRealPods(cluster);

  it('reads and writes files in an image without a shell', async () => {
    const { driver } = pods();
    const image = realNodeImage('pause');
    const { id } = await pods().claimed(realOrder(pods(), { image, workingDir: '/', given: {} }));
    const never = new AbortController().signal;
    const at = (path: string) => ({ id, path: Buffer.from(path) });
    const request = { overwrite: true, parents: false };
    await driver.files.write(
      at('/dev/shm/file'),
      { content: Buffer.from('content'), ...request },
      never,
    );

    const { content } = await driver.files.open(at('/dev/shm/file'), {}, never);
    expect(await text(content)).to.equal('content');
    const { entries } = await driver.files.list(at('/'), { depth: 1, limit: 100 }, never);
    expect(entries.map(({ path }) => String(path))).to.include.members(['pause', '.sandpool']);
    const inside = { ...at('/.sandpool/launcher') };
    expect(
      await problemOf(driver.files.write(inside, { content: Buffer.from('x'), ...request }, never)),
    ).to.equal('denied');
  });

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
          keepsMetadata: true,
          // Of 64 MiB, as containerd makes it.
          smallFolder: '/dev/shm',
          sh,
          unknownId: v7(),
          close: () => Promise.resolve(),
        };
      });
    });
});

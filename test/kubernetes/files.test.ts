import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { v7 } from 'uuid';
import { filesSuite } from '../contracts/files/files.ts';
import { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { keepsAttributes } from '../support/harness/tmpfs-attributes.ts';
import { sampled } from '../support/harness/sampled.ts';

import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
describe('on simulated nodes', () => {
  const cluster = onTheControlPlane();

  sampled(() => {
    filesSuite('Pods', async () => {
      const pods = await PodDriver.alone(cluster());
      const { id } = await pods.claimed();
      const folder = `/tmp/sandpool-files-${v7()}`;
      mkdirSync(folder);
      chmodSync(folder, 0o777);
      const sh = async (script: string): Promise<string> => {
        const request = {
          argv: ['/bin/sh', '-c', script],
          timeoutMs: NEVER_COMES_MS,
          outputLimit: 1 << 20,
        };
        const { stdout } = await pods.driver.exec(id, request, new AbortController().signal);
        return String(stdout);
      };
      await sh(`mkdir ${folder}/of`);
      const smallFolder = mountedSmall(`${folder}/small`, cluster().pidOf('kwok'));
      return {
        files: pods.driver.files,
        id,
        folder: `${folder}/of`,
        keepsMetadata: keepsAttributes(folder),
        ...(smallFolder === undefined ? {} : { smallFolder }),
        sh,
        unknownId: v7(),
        close: async () => {
          await pods.close();
          rmSync(folder, { recursive: true, force: true });
        },
      };
    });
  });
});

/**
 * A file system of 4 MiB of its own, as long as kwok runs, whose processes alone see it; undefined
 * for whoever may not mount one.
 */
const mountedSmall = (folder: string, kwok: number | undefined): string | undefined => {
  mkdirSync(folder);
  const inside = ['--target', String(kwok), '--mount', '--root'];
  const options = 'size=4m,mode=1777';
  const { status } = spawnSync('nsenter', [
    ...inside,
    ...['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', folder],
  ]);
  return status === 0 ? folder : undefined;
};

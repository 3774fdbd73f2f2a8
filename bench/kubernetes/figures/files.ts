import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { inPairs } from '../../figure.ts';
import { rowOf, type Measure } from '../../measure.ts';
import {
  BYTES,
  download,
  MIB,
  rateOf,
  run,
  stream,
  upload,
  writePieces,
  type Place,
} from '../../transfers.ts';
import { createPool, onACluster } from '../cluster.ts';

const POOL = 'bench';

export const files = onACluster(
  'files',
  `${MIB} MiB up, down, and as a stream of output of a Pod, against kubectl exec`,
  async ({ bench, controlPlane, startReplicas }) => {
    const { first, tenantKey, tenantNamespace } = await startReplicas(1);
    const { service } = first;
    await createPool(service, POOL, 1);
    await service.untilIdle(POOL, 1);
    const { sandboxId: id, podName } = await service.claimed(POOL);
    const bare: Place = { service, key: tenantKey, id, folder: '' };
    // kwok runs commands of Pods on this machine, in a folder that goes with the cluster.
    const place = { ...bare, folder: (await run(bare, 'pwd')).trim() };
    await run(place, `head -c ${BYTES} /dev/urandom > content`);
    const program = controlPlane.kubectlProgram;
    const exec = [
      `--kubeconfig=${controlPlane.kubeconfig('admin')}`,
      ...['exec', '-i', '-n', tenantNamespace, podName, '--'],
    ];
    const kubectl = async (argv: readonly string[], hasInput = false): Promise<number> => {
      const began = performance.now();
      const child = spawn(program, [...exec, ...argv], { stdio: ['pipe', 'pipe', 'inherit'] });
      const closed = once(child, 'close');
      child.stdout.resume();
      if (hasInput) await writePieces(child.stdin);
      child.stdin.end();
      const [code]: unknown[] = await closed;
      if (code !== 0) throw new Error(`kubectl exec ended with ${String(code)}`);
      return rateOf(performance.now() - began);
    };
    const row = async (
      name: string,
      sides: Parameters<typeof inPairs<number>>[1],
    ): Promise<Measure> =>
      rowOf({ name, unit: 'MB/s', better: 'more' }, await inPairs(bench, sides, 1), (rate) => rate);
    return [
      await row(`upload of ${MIB} MiB to a Pod / kubectl exec dd`, {
        ours: () => upload(place),
        theirs: () => kubectl(['dd', `of=${place.folder}/theirs`, 'bs=64k', 'status=none'], true),
      }),
      await row(`download of ${MIB} MiB from a Pod / kubectl exec cat`, {
        ours: () => download(place),
        theirs: () => kubectl(['cat', `${place.folder}/content`]),
      }),
      await row('one stream of random bytes of a Pod / kubectl exec cat', {
        ours: () => stream(place),
        theirs: () => kubectl(['cat', `${place.folder}/content`]),
      }),
    ];
  },
);

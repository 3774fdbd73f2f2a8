import { spawnSync } from 'node:child_process';
import { posix } from 'node:path';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import type { VolumeMount } from '../../model/templates/template.ts';
import type { HostMount } from '../spawner/protocol.ts';

export interface VolumePlaces {
  directoryOf(namespace: string, claimName: string): string | undefined;
}

/** No mount may cover them. */
const KEPT = new Set([
  'usr',
  'etc',
  'proc',
  'dev',
  'sys',
  'bin',
  'sbin',
  'lib',
  'lib64',
  '.sandpool',
]);
/** In bytes, on common file systems. */
const MOST_NAME_BYTES = 255;

/**
 * Refuses mounts that cover the sandbox's own folders or each other. Links out of a volume are
 * refused by the launcher.
 */
export const checkVolumeMounts = (
  mounts: readonly VolumeMount[],
  { canBindFolders }: { readonly canBindFolders: () => boolean },
): void => {
  const paths = mounts.map(({ mountPath }) => posix.normalize(`${mountPath}/`));
  mounts.forEach(({ subPath }, index) => {
    const refused = (field: string, why: string): DefinitionRefused =>
      new DefinitionRefused(`overrides.volumes[${index}].${field}: ${why}`);
    const path = paths[index] ?? '/';
    const names = namesOf(subPath);
    if (names.some((name) => Buffer.byteLength(name) > MOST_NAME_BYTES))
      throw refused('subPath', `each name in it can have at most ${MOST_NAME_BYTES} bytes`);
    if (names.length > 0 && !canBindFolders())
      throw refused('subPath', "this machine's bubblewrap is too old to mount a folder; update it");
    if (path === '/' || path === '/home/' || KEPT.has(path.split('/')[1] ?? ''))
      throw refused('mountPath', `nothing can be mounted at ${path}`);
    if (paths.some((other, at) => at !== index && path.startsWith(other)))
      throw refused('mountPath', 'is within the mount path of another volume');
  });
};

/** Throws if a volume does not belong to the namespace any more. */
export const hostMountsOf = (
  mounts: readonly VolumeMount[],
  namespace: string,
  places: VolumePlaces | undefined,
): readonly HostMount[] =>
  mounts.map(({ claimName, mountPath, subPath, readOnly = false }) => {
    const source = places?.directoryOf(namespace, claimName);
    if (source === undefined) throw new Error(`the volume ${claimName} no longer exists`);
    const target = posix.normalize(`${mountPath}/`).slice(0, -1);
    const names = namesOf(subPath);
    return { source, target, readOnly, subPath: names.length > 0 ? names.join('/') : undefined };
  });

/** Empty for the volume itself. */
const namesOf = (subPath = ''): readonly string[] =>
  subPath.split('/').filter((name) => name !== '' && name !== '.');

/** bubblewrap 0.10 and later can bind by descriptor; older ones with security updates. */
export const bindsFolders = (bwrapPath: string): boolean =>
  spawnSync(bwrapPath, ['--help'], { encoding: 'utf8', timeout: 5_000 }).stdout?.includes(
    '--bind-fd',
  );

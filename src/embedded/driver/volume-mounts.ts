import { spawnSync } from 'node:child_process';
import { posix } from 'node:path';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import type { VolumeMount } from '../../model/templates/template.ts';
import type { HostMount } from '../spawner/protocol.ts';

/** Finds the directory of a namespace's claim. */
export interface VolumePlaces {
  directoryOf(namespace: string, claimName: string): string | undefined;
}

/** Names at the top of every sandbox that must stay as they are. */
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
/** The most bytes of a file's name that file systems take. */
const MOST_NAME_BYTES = 255;

/**
 * Refuses mounts that would stand in the way of the sandbox's own or of each other, and folders of
 * volumes that can't be mounted. Paths that lead out of a volume were refused before; links that
 * do, the launcher refuses.
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
      throw refused('subPath', `each name in it has at most ${MOST_NAME_BYTES} bytes`);
    if (names.length > 0 && !canBindFolders())
      throw refused('subPath', "this machine's bubblewrap is too old to mount a folder; update it");
    if (path === '/' || path === '/home/' || KEPT.has(path.split('/')[1] ?? ''))
      throw refused('mountPath', `nothing can be mounted at ${path}`);
    if (paths.some((other, at) => at !== index && path.startsWith(other)))
      throw refused('mountPath', 'lies within that of another volume');
  });
};

/** Throws where a volume is not the namespace's, or no more. */
export const hostMountsOf = (
  mounts: readonly VolumeMount[],
  namespace: string,
  places: VolumePlaces | undefined,
): readonly HostMount[] =>
  mounts.map(({ claimName, mountPath, subPath, readOnly = false }) => {
    const source = places?.directoryOf(namespace, claimName);
    if (source === undefined) throw new Error(`there is no volume ${claimName} any more`);
    const target = posix.normalize(`${mountPath}/`).slice(0, -1);
    const names = namesOf(subPath);
    return { source, target, readOnly, subPath: names.length > 0 ? names.join('/') : undefined };
  });

/** Returns the names of the folders that a path goes through; none mean the volume itself. */
const namesOf = (subPath = ''): readonly string[] =>
  subPath.split('/').filter((name) => name !== '' && name !== '.');

/**
 * Returns whether this bubblewrap binds a folder that was opened before, by its descriptor: 0.10
 * and later do, and others with their distribution's security updates.
 */
export const bindsFolders = (bwrapPath: string): boolean =>
  spawnSync(bwrapPath, ['--help'], { encoding: 'utf8', timeout: 5_000 }).stdout?.includes(
    '--bind-fd',
  );

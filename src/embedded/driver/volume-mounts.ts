import { posix } from 'node:path';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import type { VolumeMount } from '../../model/templates/template.ts';
import type { HostMount } from '../spawner/protocol.ts';

/** Where the directory of a namespace's claim is. */
export interface VolumePlaces {
  directoryOf(namespace: string, claimName: string): string | undefined;
}

/** What every sandbox has at its top, and must stay as it is. */
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

/**
 * Refuses mounts that would stand in the way of the sandbox's own or of each other. A folder of a
 * volume is refused: a sandbox that writes to the volume could make it lead elsewhere.
 */
export const checkVolumeMounts = (mounts: readonly VolumeMount[]): void => {
  const paths = mounts.map(({ mountPath }) => posix.normalize(`${mountPath}/`));
  mounts.forEach(({ subPath }, index) => {
    const refused = (field: string, why: string): DefinitionRefused =>
      new DefinitionRefused(`overrides.volumes[${index}].${field}: ${why}`);
    const path = paths[index] ?? '/';
    if (subPath !== undefined && subPath !== '')
      throw refused('subPath', 'volumes are mounted whole here');
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
  mounts.map(({ claimName, mountPath, readOnly = false }) => {
    const source = places?.directoryOf(namespace, claimName);
    if (source === undefined) throw new Error(`there is no volume ${claimName} any more`);
    return { source, target: posix.normalize(`${mountPath}/`).slice(0, -1), readOnly };
  });

import { statfs } from 'node:fs/promises';
import type { Volume, Volumes } from '../../contracts/volumes.ts';
import type { VolumeDirectory } from '../../model/templates/volume-directory.ts';

/** A missing directory is not listed, and can't be mounted. */
export class VolumeDirectories implements Volumes {
  readonly #byNamespace = new Map<string, Map<string, string>>();

  constructor(directories: readonly VolumeDirectory[]) {
    for (const { namespace, claimName, path } of directories) {
      const own = this.#byNamespace.get(namespace) ?? new Map<string, string>();
      this.#byNamespace.set(namespace, own.set(claimName, path));
    }
  }

  get provided(): boolean {
    return this.#byNamespace.size > 0;
  }

  async list(namespace: string): Promise<readonly Volume[]> {
    const own = [...(this.#byNamespace.get(namespace) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
    const volumes = await Promise.all(
      own.map(async ([claimName, path]) => {
        const capacity = await capacityOf(path);
        return capacity === undefined ? [] : [volumeOf(claimName, capacity)];
      }),
    );
    return volumes.flat();
  }

  directoryOf(namespace: string, claimName: string): string | undefined {
    return this.#byNamespace.get(namespace)?.get(claimName);
  }
}

const volumeOf = (claimName: string, capacity: string): Volume => ({
  claimName,
  displayName: claimName,
  capacity,
  accessModes: ['ReadWriteMany'],
  storageClass: 'directory',
  phase: 'Bound',
});

/** Such as `1024Mi`; undefined if the directory is missing. */
const capacityOf = async (path: string): Promise<string | undefined> => {
  try {
    const { bsize, blocks } = await statfs(`${path}/.`); // fails for a plain file
    return `${Math.floor((bsize * blocks) / 2 ** 20)}Mi`;
  } catch {
    return undefined;
  }
};

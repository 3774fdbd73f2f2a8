import type { Clock } from '../../contracts/clock.ts';
import type { Volume, Volumes } from '../../contracts/volumes.ts';
import { SharedReads } from '../../lib/shared-reads.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { asRefusal } from '../api/api-errors.ts';
import { listPageOf } from '../api/api-objects.ts';

export interface BoundVolumesDeps {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly provided: boolean;
}

const PAGE = 250;
const MOST_VOLUMES = 1_000;
/** The name that people see instead of the claim's. */
const DISPLAY_NAME_ANNOTATION = 'sandpool.dev/display-name';

/** Read at most once in 250 ms. */
export class BoundVolumes implements Volumes {
  readonly provided: boolean;
  readonly #reads: SharedReads<readonly Volume[]>;

  constructor({ api, clock, provided }: BoundVolumesDeps) {
    this.provided = provided;
    this.#reads = new SharedReads({ clock, read: (namespace) => boundIn(api, namespace) });
  }

  async list(namespace: string): Promise<readonly Volume[]> {
    return this.provided ? ((await this.#reads.read(namespace)) ?? []) : [];
  }
}

const boundIn = async (api: ApiClient, namespace: string): Promise<readonly Volume[]> => {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims`;
  const volumes: Volume[] = [];
  try {
    for (
      let next: string | undefined, first = true;
      (first || next !== undefined) && volumes.length < MOST_VOLUMES;
      first = false
    ) {
      const page = listPageOf(await api.list(path, { limit: PAGE, continue: next }));
      for (const claim of page.items) volumes.push(...volumeIn(claim as PersistentVolumeClaim));
      next = page.next;
    }
  } catch (error) {
    throw asRefusal(error);
  }
  return volumes.slice(0, MOST_VOLUMES).sort((a, b) => (a.claimName < b.claimName ? -1 : 1));
};

interface PersistentVolumeClaim {
  readonly metadata: {
    readonly name: string;
    readonly deletionTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly storageClassName?: string; readonly accessModes?: readonly string[] };
  readonly status?: {
    readonly phase?: string;
    readonly capacity?: Readonly<Record<string, string>>;
    readonly accessModes?: readonly string[];
  };
}

const volumeIn = ({ metadata, spec, status }: PersistentVolumeClaim): readonly Volume[] => {
  if (status?.phase !== 'Bound' || metadata.deletionTimestamp !== undefined) return [];
  return [
    {
      claimName: metadata.name,
      displayName: metadata.annotations?.[DISPLAY_NAME_ANNOTATION] ?? metadata.name,
      capacity: status.capacity?.['storage'] ?? '',
      accessModes: status.accessModes ?? spec?.accessModes ?? [],
      storageClass: spec?.storageClassName ?? '',
      phase: 'Bound',
    },
  ];
};

import type { Clock } from '../../contracts/clock.ts';
import { RecordExists, type Records } from '../../contracts/record-store.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { ClusterRecord } from '../../model/fleet/cluster.ts';
import { unavailable, forbidden, invalidArgument } from '../../model/refusals.ts';
import type { ManagersOperations, ManagersView } from '../../services/fleet-views.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';

export interface ManagerAccessDeps {
  readonly clusters: Records<ClusterRecord>;
  readonly clock: Clock;
  readonly clusterId: string;
}

/**
 * An admin may cut a worker off from its managers. Stored in a record of the cluster, so it applies
 * to all replicas and survives restarts.
 */
export class ManagerAccess {
  readonly #deps: ManagerAccessDeps;
  readonly #followers = new Set<(isCutOff: boolean) => void>();
  #cutOffAt: number | undefined;

  constructor(deps: ManagerAccessDeps) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    await this.#deps.clusters.watch(({ kind, record }) => {
      if (record.clusterId !== this.#deps.clusterId) return;
      const before = this.isCutOff;
      this.#cutOffAt = kind === 'put' ? record.cutOffAt : undefined;
      if (before !== this.isCutOff) for (const each of this.#followers) each(this.isCutOff);
    });
  }

  get isCutOff(): boolean {
    return this.#cutOffAt !== undefined;
  }

  /** Undefined if managers are accepted. */
  get cutOffAt(): number | undefined {
    return this.#cutOffAt;
  }

  follow(changed: (isCutOff: boolean) => void): void {
    this.#followers.add(changed);
  }

  /** Durable when it resolves. Refuses with UNAVAILABLE if the store does not accept it. */
  async set(cutOff: boolean): Promise<void> {
    const { clusters, clusterId, clock } = this.#deps;
    const known = await clusters.get(clusterId);
    const cutOffAt = clock.now();
    try {
      if (!cutOff && known) await clusters.remove(known);
      if (cutOff && !known) await clusters.create({ clusterId, cutOffAt });
      if (cutOff && known && known.cutOffAt === undefined)
        await clusters.update({ ...known, cutOffAt });
    } catch (error) {
      if (!(error instanceof RecordConflict || error instanceof RecordExists)) throw error;
    }
    // another write may have won, and older resource definitions drop the field
    if (this.isCutOff !== cutOff) throw unavailable('the setting could not be stored; try again');
  }
}

export interface ManagersDeps {
  readonly addresses: readonly string[];
  readonly access: Pick<ManagerAccess, 'cutOffAt' | 'set'>;
  readonly links: () => number;
  readonly apiKeys: Pick<ApiKeyMirror, 'find'>;
  /** Only a manager's signed identity authenticates the caller. */
  readonly isLinked: (caller: Caller) => boolean;
}

/** A manager may not change this itself. */
export const managers = ({
  addresses,
  access,
  links,
  apiKeys,
  isLinked,
}: ManagersDeps): ManagersOperations => {
  const getManagers = (): ManagersView => ({
    addresses,
    cutOffAt: access.cutOffAt,
    links: links(),
  });
  return {
    getManagers,
    setManagers: async (caller, { cutOff }) => {
      if (isLinked(caller) || apiKeys.find(caller.keyId)?.promotedBy !== undefined)
        throw forbidden('cutOff: needs an API key of this cluster, not one of a manager');
      if (addresses.length === 0)
        throw invalidArgument('cutOff', 'this cluster has no manager: fleet.managers is empty');
      await access.set(cutOff);
      return getManagers();
    },
  };
};

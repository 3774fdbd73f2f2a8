import type { CopyWord, EnvCopy } from '../../model/envs/env-copy.ts';
import type { MemberConfig } from '../../model/envs/env.ts';
import type { Tenant } from '../../model/tenant.ts';

/** An env on a cluster, addressed as its owner. */
export interface CopyPlace {
  readonly clusterId: string;
  readonly owner: Tenant;
  readonly name: string;
  /** Number of the env's members on the cluster, and bytes of the env's own spec as JSON. */
  readonly members: number;
  readonly bytes: number;
}

export interface MemberDraft {
  readonly name: string;
  readonly replicas: number;
  readonly config: MemberConfig;
}

/** A pool as its cluster presents it: the API's `Pool`. */
export type ShownPool = Readonly<Record<string, unknown>>;

/**
 * Envs of other clusters, through those clusters' own operations. All calls are idempotent. Each
 * rejects with the Refusal of that cluster. It rejects with CLUSTER_UNAVAILABLE if no link is open,
 * or if no answer arrives within 10 s; the outcome is then unknown.
 */
export interface EnvCopies {
  /** Whether a cluster with this id has ever joined. */
  knows(clusterId: string): boolean;
  /** Whether the cluster does not exist and is not invited, so nobody has to end its envs. */
  isRemoved(clusterId: string): boolean;
  /** Recent latency of its answers in ms; undefined if no link is open. */
  latencyOf(clusterId: string): number | undefined;
  /**
   * Undefined if the owner has no env of that name. With `isLook`, does not queue, and is refused
   * with ClusterBusy if the owner has its maximum of calls in progress.
   */
  read(place: CopyPlace, terms?: { readonly isLook?: boolean }): Promise<EnvCopy | undefined>;
  /** Refuses with ALREADY_EXISTS. */
  create(place: CopyPlace, word: CopyWord): Promise<void>;
  replace(place: CopyPlace, word: CopyWord): Promise<void>;
  /** Ends the env with all its members. */
  end(place: CopyPlace): Promise<void>;
  addMember(place: CopyPlace, member: MemberDraft): Promise<ShownPool>;
  /** Changes the given fields. `tag`: only while the copy has this tag. */
  changeMember(
    place: CopyPlace,
    name: string,
    change: { readonly replicas?: number; readonly config?: MemberConfig; readonly tag?: string },
  ): Promise<ShownPool>;
  endMember(place: CopyPlace, name: string, force: boolean): Promise<void>;
  /** Stops autoscaling of the group's members; does nothing if there is no such group. */
  endGroup(place: CopyPlace, name: string): Promise<void>;
  listPools(place: CopyPlace): Promise<readonly ShownPool[]>;
  /** Renders the members again from the cluster's template. Refuses with ENV_SYNC_PARTIAL. */
  sync(place: CopyPlace): Promise<void>;
}

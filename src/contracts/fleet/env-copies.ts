import type { CopyWord, EnvCopy } from '../../model/envs/env-copy.ts';
import type { MemberConfig } from '../../model/envs/env.ts';
import type { Tenant } from '../../model/tenant.ts';

/** Says which env on which cluster; it is asked for as its owner does. */
export interface CopyPlace {
  readonly clusterId: string;
  readonly owner: Tenant;
  readonly name: string;
  /** Members of the env on the cluster, and bytes of what the env says of itself, as JSON. */
  readonly members: number;
  readonly bytes: number;
}

export interface MemberDraft {
  readonly name: string;
  readonly replicas: number;
  readonly config: MemberConfig;
}

/** A pool as its cluster shows it: the API's `Pool`. */
export type ShownPool = Readonly<Record<string, unknown>>;

/**
 * Envs of other clusters, by those clusters' own operations. All may be repeated. Each rejects with
 * the Refusal of that cluster; with CLUSTER_UNAVAILABLE where no link to it stands, or it gives no
 * answer within 10 s: then whether it took effect is not known.
 */
export interface EnvCopies {
  /** Whether such a cluster has ever joined. */
  knows(clusterId: string): boolean;
  /** Whether there is none, and nobody has invited one: what was there is nobody's to end. */
  isRemoved(clusterId: string): boolean;
  /** How long its answers take to come, in ms; undefined: no link to it stands. */
  latencyOf(clusterId: string): number | undefined;
  /**
   * Undefined: there is none of that name that is the owner's. A look waits for nothing else, and
   * is refused with ClusterBusy where the owner has as many as one may.
   */
  read(place: CopyPlace, terms?: { readonly isLook?: boolean }): Promise<EnvCopy | undefined>;
  /** Refuses with ALREADY_EXISTS. */
  create(place: CopyPlace, word: CopyWord): Promise<void>;
  replace(place: CopyPlace, word: CopyWord): Promise<void>;
  /** Ends it with all its members. */
  end(place: CopyPlace): Promise<void>;
  addMember(place: CopyPlace, member: MemberDraft): Promise<ShownPool>;
  /** Changes what is named. `tag`: only while the copy has it. */
  changeMember(
    place: CopyPlace,
    name: string,
    change: { readonly replicas?: number; readonly config?: MemberConfig; readonly tag?: string },
  ): Promise<ShownPool>;
  endMember(place: CopyPlace, name: string, force: boolean): Promise<void>;
  /** Has nothing size its members; without a word where there is no such group. */
  endGroup(place: CopyPlace, name: string): Promise<void>;
  listPools(place: CopyPlace): Promise<readonly ShownPool[]>;
  /** Renders its members anew from the cluster's template. Refuses with ENV_SYNC_PARTIAL. */
  sync(place: CopyPlace): Promise<void>;
}

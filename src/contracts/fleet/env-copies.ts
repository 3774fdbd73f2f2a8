import type { CopyWord, EnvCopy } from '../../model/envs/env-copy.ts';
import type { MemberConfig } from '../../model/envs/env.ts';
import type { Tenant } from '../../model/tenant.ts';

export interface CopyPlace {
  readonly clusterId: string;
  readonly owner: Tenant;
  readonly name: string;
  /** `bytes`: the env's own spec as JSON. */
  readonly members: number;
  readonly bytes: number;
}

export interface MemberDraft {
  readonly name: string;
  readonly replicas: number;
  readonly config: MemberConfig;
}

/** The API's `Pool`, as its cluster presents it. */
export type ShownPool = Readonly<Record<string, unknown>>;

/**
 * All calls are idempotent. Each rejects with the Refusal of that cluster, or with
 * CLUSTER_UNAVAILABLE if no link is open, or if no answer arrives within 10 s; the outcome is then
 * unknown.
 */
export interface EnvCopies {
  knows(clusterId: string): boolean;
  /** Nobody has to end its envs: it does not exist and is not invited. */
  isRemoved(clusterId: string): boolean;
  /** In ms; undefined if no link is open. */
  latencyOf(clusterId: string): number | undefined;
  /**
   * Undefined if the owner lacks an env of that name. With `isLook`, does not queue, and refuses
   * with ClusterBusy.
   */
  read(place: CopyPlace, terms?: { readonly isLook?: boolean }): Promise<EnvCopy | undefined>;
  /** Refuses with ALREADY_EXISTS. */
  create(place: CopyPlace, word: CopyWord): Promise<void>;
  replace(place: CopyPlace, word: CopyWord): Promise<void>;
  end(place: CopyPlace): Promise<void>;
  addMember(place: CopyPlace, member: MemberDraft): Promise<ShownPool>;
  /** Keeps omitted fields. `tag`: only while the copy has this tag. */
  changeMember(
    place: CopyPlace,
    name: string,
    change: { readonly replicas?: number; readonly config?: MemberConfig; readonly tag?: string },
  ): Promise<ShownPool>;
  endMember(place: CopyPlace, name: string, force: boolean): Promise<void>;
  endGroup(place: CopyPlace, name: string): Promise<void>;
  listPools(place: CopyPlace): Promise<readonly ShownPool[]>;
  /** From the cluster's template. Refuses with ENV_SYNC_PARTIAL. */
  sync(place: CopyPlace): Promise<void>;
}

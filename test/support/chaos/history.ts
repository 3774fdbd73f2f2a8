/** In ms, by the monotonic clock of the whole run. */
export type Moment = number;

export interface ClaimAsked {
  readonly what: 'claim';
  readonly pool: string;
  readonly key?: string;
  readonly waitSeconds?: number;
  /** Replaces the template's idle timeout. */
  readonly idleSeconds?: number;
  /** Repetitions share the name. */
  readonly name?: string;
  readonly approvalSeconds?: number;
}

export interface DecideAsked {
  readonly what: 'decide';
  readonly approval: string;
  readonly decision: 'approve' | 'deny';
}

export interface ExecAsked {
  readonly what: 'exec';
  readonly id: string;
  readonly seconds?: number;
  readonly command?: string;
}

/** Names are in the client's namespace. */
export type Asked =
  | ClaimAsked
  | ExecAsked
  | DecideAsked
  | { readonly what: 'get'; readonly id: string }
  | { readonly what: 'delete'; readonly id: string; readonly approvalSeconds?: number }
  | { readonly what: 'create-pool'; readonly pool: string; readonly replicas?: number }
  | { readonly what: 'resize-pool'; readonly pool: string; readonly replicas: number }
  | { readonly what: 'delete-pool'; readonly pool: string; readonly force?: boolean }
  | { readonly what: 'get-pool'; readonly pool: string }
  | { readonly what: 'create-env' | 'get-env' | 'delete-env'; readonly env: string }
  | { readonly what: 'label-env'; readonly env: string; readonly label: string }
  | {
      readonly what: 'add-member' | 'size-group';
      readonly env: string;
      readonly pool: string;
      readonly least: number;
    };

export interface Answer {
  readonly status: number;
  readonly errorCode?: string;
  readonly approval?: string;
  /** Of a pool its phase. */
  readonly id?: string;
  readonly shows?: string;
}

/** A request to one replica; each repetition is its own call. */
export interface Call {
  /** `namespace/team/user`, as in records. */
  readonly user: string;
  readonly replica: number;
  readonly asked: Asked;
  readonly invoked: Moment;
  /** Also of giving up. */
  readonly completed: Moment;
  /** Absent if unknown: its effect may come later. */
  readonly answer?: Answer;
  /** Sent to the port for E2B's SDKs. */
  readonly bySdk?: true;
}

export interface Disturbance {
  readonly kind: string;
  readonly victim: string;
  readonly from: Moment;
  readonly to: Moment;
  /** From then on every shard has a leader that can write, even before `to`. */
  readonly led: Moment;
  readonly removed: readonly string[];
  readonly edited?: readonly string[];
  /** Deleted with its content, and made again. */
  readonly namespace?: string;
}

export interface Usage {
  readonly sandboxes: number;
  readonly pools: number;
  readonly replicas: number;
}

export interface Look {
  readonly asked: Moment;
  readonly answered: Moment;
  /** By replica: its shards; undefined without an answer. */
  readonly led: readonly (readonly number[] | undefined)[];
  /** By user; omits users with unknown usage. */
  readonly usage: Readonly<Record<string, Usage>>;
}

export interface Rest {
  readonly from: Moment;
  readonly until: Moment;
  readonly looks: readonly Look[];
}

/**
 * A store set back: the changes of `lost + 1` undo the writes after `kept` and up to `lost`.
 * Revisions count on.
 */
export interface Rewind {
  readonly kept: number;
  readonly lost: number;
}

/** A linearizable read of the store's revision, between the two moments. */
export interface Sighting {
  readonly asked: Moment;
  readonly answered: Moment;
  readonly revision: number;
}

export interface PodState {
  readonly ownerUid: string | undefined;
  readonly uid: string;
  readonly node: string | undefined;
  readonly vitals: 'starting' | 'ready' | 'over';
  readonly terminating: boolean;
}

export interface RecordState {
  readonly uid: string;
  readonly poolUid: string;
  readonly namespace: string;
  readonly terminating: boolean;
  readonly podUid?: string;
  readonly claim?: ClaimState;
}

export interface ClaimState {
  readonly owner: string;
  readonly claimedAt: string;
  readonly mark?: string;
  /** In ms; absent or 0: never. */
  readonly idleTimeoutMs?: number;
}

export interface PoolState {
  /** Absent until a daemon has settled it. */
  readonly poolUid?: string;
  readonly owner: string;
  readonly replicas: number;
  readonly deleting: boolean;
}

export interface EnvState {
  readonly label?: string;
  readonly deleting: boolean;
}

export interface ApprovalState {
  /** `namespace/team/user` of the requester. */
  readonly owner: string;
  readonly keyId: string;
  readonly operation: string;
  readonly path: string;
  readonly status: 'pending' | 'approved' | 'denied' | 'expired' | 'consumed';
  readonly expiresAt: number;
  readonly use?: { readonly at: number; readonly attempt: number; readonly settled: boolean };
}

/** Without a state, the object is gone. */
export type StoreChange = { readonly revision: number; readonly name: string } & (
  | { readonly kind: 'sandbox'; readonly state?: RecordState }
  | { readonly kind: 'pod'; readonly state?: PodState }
  | { readonly kind: 'pool'; readonly namespace: string; readonly state?: PoolState }
  | { readonly kind: 'env'; readonly namespace: string; readonly state?: EnvState }
  | { readonly kind: 'approval'; readonly namespace: string; readonly state?: ApprovalState }
  | { readonly kind: 'node'; readonly state?: { readonly takesWork: boolean } }
);

export interface Evidence {
  readonly calls: readonly Call[];
  readonly changes: readonly StoreChange[];
  readonly sightings: readonly Sighting[];
  readonly disturbances: readonly Disturbance[];
  readonly rests: readonly Rest[];
  readonly rewinds: readonly Rewind[];
  readonly quota: number;
  readonly replicaQuota: number;
  readonly gated?: { readonly user: string; readonly grantMs: number };
  /** Milliseconds since the epoch at moment 0, by a true clock. */
  readonly epoch: number;
}

export interface Violation {
  readonly promise: string;
  readonly what: string;
}

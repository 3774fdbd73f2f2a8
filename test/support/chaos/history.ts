/** Milliseconds of the one monotonic clock that everything of a run is timed by. */
export type Moment = number;

export interface ClaimAsked {
  readonly what: 'claim';
  readonly pool: string;
  readonly key?: string;
  /** How long it waits for an instance. */
  readonly waitSeconds?: number;
  /** Replaces the idle timeout of the template. */
  readonly idleSeconds?: number;
  /** Tells the request from every other: one that repeats it is the same one. */
  readonly name?: string;
  readonly approvalSeconds?: number;
}

/** What an operator does about a request that waits. */
export interface DecideAsked {
  readonly what: 'decide';
  readonly approval: string;
  readonly decision: 'approve' | 'deny';
}

export interface ExecAsked {
  readonly what: 'exec';
  readonly id: string;
  /** How long the command runs. */
  readonly seconds?: number;
  /** What is run in its place. */
  readonly command?: string;
}

/** What a client asked for. Of claims, pools and envs: names in the namespace of the client. */
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
  /** By which it waits for a person, or did. */
  readonly approval?: string;
  /** The sandbox that it shows, and its status; of a pool its phase. */
  readonly id?: string;
  readonly shows?: string;
}

/** One request to one replica; a repetition is a call of its own. */
export interface Call {
  /** `namespace/team/user`, as records name an owner. */
  readonly user: string;
  readonly replica: number;
  readonly asked: Asked;
  readonly invoked: Moment;
  /** When the answer was there, or no more was waited for. */
  readonly completed: Moment;
  /** Absent: unknown. It may have had its effect, or have it yet. */
  readonly answer?: Answer;
  /** It went to the port that is for E2B's SDKs. */
  readonly bySdk?: true;
}

/** Something done to the system from outside; the log of its effect. */
export interface Disturbance {
  readonly kind: string;
  readonly victim: string;
  readonly from: Moment;
  readonly to: Moment;
  /** From then on some replica leads every shard and can write, though `to` may be later. */
  readonly led: Moment;
  /** Instances whose Pod or record it removed by hand. */
  readonly removed: readonly string[];
  /** Instances whose labels it changed by hand. */
  readonly edited?: readonly string[];
  /** It was deleted with all that was in it, and made again. */
  readonly namespace?: string;
}

/** Usage of one user, as a replica tells it. */
export interface Usage {
  readonly sandboxes: number;
  readonly pools: number;
  readonly replicas: number;
}

/** What the replicas said of themselves, while nothing disturbed them. */
export interface Look {
  readonly asked: Moment;
  readonly answered: Moment;
  /** By replica: the shards that it says it leads; undefined where it did not answer. */
  readonly led: readonly (readonly number[] | undefined)[];
  /** By user; one is left out whose usage was not known. */
  readonly usage: Readonly<Record<string, Usage>>;
}

/** A time without faults and load. */
export interface Rest {
  readonly from: Moment;
  readonly until: Moment;
  /** In order. */
  readonly looks: readonly Look[];
}

/**
 * A store that was set back: what it wrote after `kept` and up to `lost` is undone by the changes
 * of `lost + 1`. Revisions count on, as if that were one large write.
 */
export interface Rewind {
  readonly kept: number;
  readonly lost: number;
}

/** A linearizable read of the store's revision, at some moment between the two. */
export interface Sighting {
  readonly asked: Moment;
  readonly answered: Moment;
  readonly revision: number;
}

/** A Pod as the store has it. */
export interface PodState {
  readonly ownerUid: string | undefined;
  readonly uid: string;
  readonly node: string | undefined;
  readonly vitals: 'starting' | 'ready' | 'over';
  readonly terminating: boolean;
}

/** A `Sandbox` object as the store has it. */
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
  /** ms without activity after which it ends; absent or 0: never. */
  readonly idleTimeoutMs?: number;
}

export interface PoolState {
  /** As records name it; absent while no daemon has settled it. */
  readonly poolUid?: string;
  readonly owner: string;
  readonly replicas: number;
  readonly deleting: boolean;
}

export interface EnvState {
  readonly label?: string;
  readonly deleting: boolean;
}

/** An `Approval` object as the store has it. Times in ms since the epoch, by some replica's clock. */
export interface ApprovalState {
  /** `namespace/team/user` of who asked. */
  readonly owner: string;
  readonly keyId: string;
  readonly operation: string;
  readonly path: string;
  readonly status: 'pending' | 'approved' | 'denied' | 'expired' | 'consumed';
  readonly expiresAt: number;
  readonly use?: { readonly at: number; readonly attempt: number; readonly settled: boolean };
}

/** One change of the store, whoever made it; without a state the object is gone. */
export type StoreChange = { readonly revision: number; readonly name: string } & (
  | { readonly kind: 'sandbox'; readonly state?: RecordState }
  | { readonly kind: 'pod'; readonly state?: PodState }
  | { readonly kind: 'pool'; readonly namespace: string; readonly state?: PoolState }
  | { readonly kind: 'env'; readonly namespace: string; readonly state?: EnvState }
  | { readonly kind: 'approval'; readonly namespace: string; readonly state?: ApprovalState }
  | { readonly kind: 'node'; readonly state?: { readonly takesWork: boolean } }
);

/** All that is known of a run. */
export interface Evidence {
  readonly calls: readonly Call[];
  /** Every revision, in order, from the first. */
  readonly changes: readonly StoreChange[];
  /** In order. */
  readonly sightings: readonly Sighting[];
  readonly disturbances: readonly Disturbance[];
  readonly rests: readonly Rest[];
  readonly rewinds: readonly Rewind[];
  /** Sandboxes that one user may have. */
  readonly quota: number;
  /** Maximum number of replicas of one user, over all pools. */
  readonly replicaQuota: number;
  /** Whose claims and deletes wait for a person, and how long a grant is good; absent: nobody's. */
  readonly gated?: { readonly user: string; readonly grantMs: number };
  /** Milliseconds since the epoch at moment 0, by a clock that nobody set. */
  readonly epoch: number;
}

export interface Violation {
  readonly promise: string;
  readonly what: string;
}

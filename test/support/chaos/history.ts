/** Milliseconds of the one monotonic clock that everything of a run is timed by. */
export type Moment = number;

/** What a client asked for. Of a claim and a pool: names in the namespace of the client. */
export type Asked =
  | { readonly what: 'claim'; readonly pool: string; readonly key?: string }
  | { readonly what: 'get' | 'exec' | 'delete'; readonly id: string }
  | { readonly what: 'create-pool' | 'delete-pool' | 'get-pool'; readonly pool: string };

export interface Answer {
  readonly status: number;
  readonly errorCode?: string;
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
  readonly terminating: boolean;
  readonly podUid?: string;
  readonly claim?: { readonly owner: string; readonly claimedAt: string; readonly mark?: string };
}

export interface PoolState {
  /** As records name it; absent while no daemon has settled it. */
  readonly poolUid?: string;
  readonly owner: string;
  readonly replicas: number;
  readonly deleting: boolean;
}

/** One change of the store, whoever made it; without a state the object is gone. */
export type StoreChange = { readonly revision: number; readonly name: string } & (
  | { readonly kind: 'sandbox'; readonly state?: RecordState }
  | { readonly kind: 'pod'; readonly state?: PodState }
  | { readonly kind: 'pool'; readonly namespace: string; readonly state?: PoolState }
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
  /** Sandboxes that one user may have. */
  readonly quota: number;
  /** Milliseconds since the epoch at moment 0, by a clock that nobody set. */
  readonly epoch: number;
}

export interface Violation {
  readonly promise: string;
  readonly what: string;
}

import type { EventBatch, EventRecord } from '../model/event.ts';
import type { InstanceId, Revision } from '../model/identifiers.ts';
import type { QuotaAmounts, QuotaResource } from '../model/quota.ts';
import type { RequestFingerprint } from '../model/request-fingerprint.ts';
import type { End } from '../model/sandbox.ts';
import type { Tenant } from '../model/tenant.ts';
import type { Tokens } from './tokens.ts';

export interface QuotaEntry {
  readonly name: string;
  readonly amount: number;
  readonly limit: number;
  /**
   * Tells this replica's attempts at one name apart, where there may be several. One attempt has
   * one reservation of a name.
   */
  readonly attempt?: string;
}

/** What a record says from a revision on. */
export interface Confirmation {
  readonly name: string;
  readonly amount: number;
  readonly revision: Revision;
  /** Whose reservation allowed it, if anyone's. */
  readonly attempt?: string;
}

/** How long after it was made a reservation may be written under without `stillReserved`. */
export const RESERVATION_MS = 1_000;
/** A write that a reservation allowed has landed so long after it was sent, or never does. */
export const WRITE_MS = 2_000;

/** A part of a tenant's usage of which nobody has said yet that a record stands behind it. */
export interface Reservation {
  readonly name: string;
  /** Moves with each change of the name's part. Opaque. */
  readonly version: string;
}

/** A name's part of a tenant's usage. */
export interface UsagePart extends Reservation {
  readonly amount: number;
  /** Somebody's reservation of it is open: a write may be under way. */
  readonly isReserved: boolean;
}

/** What the name's record says; `revision`: where it says so, if it has one that is compared. */
export interface ReconciledReservation extends Reservation {
  readonly amount: number;
  readonly revision?: Revision;
}

/**
 * Usage as a set of names, so that each change may be repeated. A name counts with what its record
 * said last, or with the largest reservation of it where that is more: reservations of one name by
 * several attempts don't add up, and each is taken back by its own attempt alone. Where a tenant's
 * set is not known (lost, or an older copy) it is made anew from the records, after all writes that
 * were under way have landed; until then answers reject with `unavailable`.
 */
export interface Quotas {
  /**
   * Reserves `amount` under `name`, unless the tenant's usage grows beyond the limit by that.
   * Repeating it replaces the attempt's own reservation. Answers false, and changes nothing, where
   * the limit would be passed.
   */
  reserve(tenant: Tenant, resource: QuotaResource, entry: QuotaEntry): Promise<boolean>;
  /**
   * Takes back what the attempt reserved under the name, and nothing else: what others reserved
   * stays, and what a record says. May be repeated.
   */
  withdraw(tenant: Tenant, resource: QuotaResource, name: string, attempt?: string): Promise<void>;
  /**
   * A write has landed: what it says counts in the place of the attempt's reservation, unless a
   * later revision was confirmed. Of a name that does not count it does nothing. May be repeated,
   * in any order.
   */
  confirm(tenant: Tenant, resource: QuotaResource, confirmation: Confirmation): Promise<void>;
  /**
   * Whether the attempt's reservation counts at this moment; without an attempt any of this
   * replica's. Asked before a write that comes more than a second after it.
   */
  stillReserved(
    tenant: Tenant,
    resource: QuotaResource,
    name: string,
    attempt?: string,
  ): Promise<boolean>;
  /**
   * Removes the name's part, whoever reserved it: its record is gone, or about to be. May be
   * repeated.
   */
  release(tenant: Tenant, resource: QuotaResource, name: string): Promise<void>;
  /**
   * What counts against the tenant's limits now, with what is reserved. Rejects with `unavailable`
   * where it is not known, and has it made known.
   */
  used(tenant: Tenant): Promise<QuotaAmounts>;
  /**
   * Resolves once what counts is known, which takes some seconds for a new tenant. Rejects with
   * `unavailable` where it is not by then.
   */
  whenKnown(tenant: Tenant): Promise<void>;
  /**
   * The tenant is about to use something: what is not known is made known, in the background. Never
   * throws.
   */
  expectUse(tenant: Tenant): void;
  /**
   * Counts what a record shows that was read at a start, whatever the limit. Does nothing where
   * usage outlives the replica.
   */
  restore(
    tenant: Tenant,
    resource: QuotaResource,
    part: { readonly name: string; readonly amount: number },
  ): Promise<void>;
  /**
   * Those reserved at least so long ago and not yet settled, the oldest first, at most 100. None
   * where usage is the replica's own.
   */
  unreconciled(
    tenant: Tenant,
    resource: QuotaResource,
    olderThanMs: number,
  ): Promise<readonly Reservation[]>;
  /**
   * All parts of a usage, to be compared with the records; one that changes meanwhile may lack, or
   * be told twice. None where usage is the replica's own.
   */
  parts(tenant: Tenant, resource: QuotaResource): Promise<readonly UsagePart[]>;
  /**
   * Each counts `amount` from now on, which is what its record says, and is nobody's to withdraw; 0
   * where there is none. One that was reserved or confirmed again meanwhile stays as it is; the
   * version '' is that of a name that does not count. At most 100. May be repeated.
   */
  reconcile(
    tenant: Tenant,
    resource: QuotaResource,
    settled: readonly ReconciledReservation[],
  ): Promise<void>;
}

/** Claims that wait for one pool at one time, on all replicas. */
export const MAX_WAITING_OF_POOL = 256;
/** A replica that says nothing for so long is dead, and so are the claims that wait there. */
export const WAITING_DEAD_MS = 3_000;

/** A pool, and whose it is. */
export interface WaitedPool {
  readonly uid: string;
  readonly owner: Tenant;
}

/** A claim's place in the order of those who wait for a pool. */
export interface WaitingPlace {
  readonly pool: WaitedPool;
  readonly id: string;
}

/** An instance that is tried for a claim, of its pool's owner or of another user of the team. */
export interface ClaimEntry {
  readonly pool: WaitedPool;
  /** Who claims, and on whose quota; absent: the pool's owner. */
  readonly owner?: Tenant;
  readonly instance: InstanceId;
  /** The most sandboxes that who claims may hold. */
  readonly limit: number;
  /**
   * How many of the pool this replica sees idle: this one, and those that no other claim of it
   * tries for. At least 1.
   */
  readonly idle: number;
  /** Of a claim that waits; without one it comes after all who do. */
  readonly place?: WaitingPlace | undefined;
  /** Of the claim: see QuotaEntry. */
  readonly attempt?: string;
  /**
   * An instance that was lost to another claim: the attempt's reservation of it is given up for
   * this one.
   */
  readonly from?: InstanceId | undefined;
  /**
   * Of the request, where it carries an Idempotency-Key: its entry names this instance from then
   * on.
   */
  readonly request?: RequestFingerprint | undefined;
  /** For whom the request is opened first, in the same step; without it it is open. */
  readonly open?: RequestOwner | undefined;
  /**
   * What an earlier request of the key may have claimed was read uncached, after `look-first` was
   * answered.
   */
  readonly looked?: boolean;
}

/**
 * `full`: the owner's quota is used up. `not-its-turn`: as many wait before it as are idle, or it
 * waits and another replica tries for this instance. `opened`: nothing was done but to open the
 * request, which is not new, or new with an instance that is to be looked at first. `look-first`:
 * requests were lost a moment ago, so that an earlier one of the key may have claimed what no
 * mirror shows yet; nothing was done but to open the request and withdraw `from`.
 */
export type Admission =
  | 'admitted'
  | 'full'
  | 'not-its-turn'
  | 'look-first'
  | { readonly opened: OpenedRequest };

/**
 * Claims, first come first served over all replicas. The one of rank r tries for the r-th idle
 * instance, so nobody waits for whoever is before; one that doesn't wait counts as last. Skipped is
 * who waits on a replica that is dead, or that lets what others see idle lie, each for
 * WAITING_DEAD_MS; it keeps its place for when it comes back.
 */
export interface Claims {
  /**
   * Takes the last place of the pool's order. Refuses with TOO_MANY_WAITING where there are
   * MAX_WAITING_OF_POOL.
   */
  joinWaiting(pool: WaitedPool): Promise<WaitingPlace>;
  /** May be repeated. What it could not tell is known to all after WAITING_DEAD_MS. */
  leaveWaiting(place: WaitingPlace): Promise<void>;
  /** How many wait for the pool, on all replicas. */
  waiting(pool: WaitedPool): Promise<number>;
  /**
   * All that a claim must have before it is written, in one step: the request is opened; `from` is
   * withdrawn; then, if it is its turn, a seat of the owner's quota is reserved under the
   * instance's name, and its place given up. Without its turn it has its place again. Rejects with
   * `unavailable` as `reserve` does, and where `request` is no longer this replica's to carry out.
   */
  admitClaim(entry: ClaimEntry): Promise<Admission>;
}

/**
 * Where a lease stands. `epoch` moves each time it is won; what carries an older one must not be
 * carried out.
 */
export interface Lease {
  readonly epoch: number;
  /** Still ours at this very moment. */
  held(): boolean;
}

/** Called when it has happened, in order for each shard. What it throws is logged. */
export interface LeaseListener {
  gained(shard: number): void;
  /**
   * It is no more, or another replica is to have it: then `lease` is held until `giveUp` is called,
   * which is to be soon; after some seconds it is gone.
   */
  lost(shard: number, because: 'gone' | 'wanted-elsewhere'): void;
}

/**
 * Who leads which shard (src/model/shards.ts). A lease saves double work; nothing is safe because
 * of it.
 */
export interface Leases {
  /** The shard's lease if this replica holds it. */
  lease(shard: number): Lease | undefined;
  /**
   * Reports each lease that is held now, at once, then each change. Returns how to end it. Leases
   * are taken while somebody follows.
   */
  follow(listener: LeaseListener): () => void;
  /**
   * Gives the lease back, for another replica to take at once. One that isn't held counts as given
   * up. Never rejects.
   */
  giveUp(shard: number): Promise<void>;
  /**
   * Takes no more leases, and offers what is held to other replicas, so that all can be given up in
   * order. May be repeated.
   */
  leave(): void;
  /** Takes leases again after `leave`. May be repeated. */
  join(): void;
  /** The live replicas, this one among them, as last seen; sorted. */
  replicas(): readonly string[];
  /** Who holds which shard, as last seen; a shard that nobody holds is left out. */
  holders(): ReadonlyMap<number, string>;
}

/** For whom a request under an Idempotency-Key is kept, and for how long from now. */
export interface RequestOwner {
  readonly tenant: Tenant;
  readonly ttlMs: number;
}

export type OpenedRequest =
  /**
   * `instance`: an earlier one of the key was given up, or its replica is gone; it may have claimed
   * this instance, or may yet.
   * `isUnsure`: requests were lost a moment ago, so that an earlier one of the key may have claimed
   * what no mirror shows yet.
   */
  | { readonly kind: 'new'; readonly instance?: InstanceId; readonly isUnsure?: true }
  | { readonly kind: 'in-flight' | 'reused' }
  | { readonly kind: 'answered'; readonly answer: string };

/** A request under an Idempotency-Key that is not to be carried out. */
export class RequestNotNew extends Error {
  readonly opened: Exclude<OpenedRequest, { readonly kind: 'new' }>;

  constructor(opened: Exclude<OpenedRequest, { readonly kind: 'new' }>) {
    super(`the request is ${opened.kind}`);
    this.name = 'RequestNotNew';
    this.opened = opened;
  }
}

/** The longest answer that is kept, in characters. */
export const MAX_KEPT_ANSWER = 65_536;
/** What an answer counts in bytes beside its text: what is kept to find it. */
export const KEPT_ANSWER_OVERHEAD = 256;

export interface Requests {
  /**
   * Opens a request under an Idempotency-Key. `new`: it is the caller's to carry out, and stays in
   * flight until it is answered or given up; a request whose replica died is nobody's and new
   * again. `reused`: the key has another body.
   */
  openRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<OpenedRequest>;
  /**
   * Ends a request that is in flight and keeps its answer, a text without NUL of at most
   * MAX_KEPT_ANSWER, for `ttlMs` from now. Durable when it resolves, and before any write of this
   * replica that comes later. Past the bytes that a tenant may have its oldest answers are
   * forgotten early, past those of all the oldest of the tenant that has most.
   */
  keepAnswer(mark: RequestFingerprint, owner: RequestOwner, answer: string): Promise<void>;
  /**
   * Ends a request that is in flight without an answer: its repetition is carried out anew, and is
   * told of the instance that was admitted to be claimed under it. May be repeated.
   */
  giveUpRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<void>;
}

export type Expiry =
  | { readonly expired: true }
  | { readonly expired: false; readonly activeAt: number };

/** When something last happened in a sandbox, and which ones have ended. */
export interface Activity {
  /**
   * Notes that something happens in it now. Known everywhere within a third of its idle timeout,
   * and within seconds. Costs nothing to call often. Never throws.
   */
  touch(id: InstanceId, idleTimeoutMs: number): void;
  /**
   * Notes that something goes on in it from now on, or no more, on this replica. While it does, it
   * expires nowhere. Where the replica dies, that ends within a minute. Never throws.
   */
  work(id: InstanceId, goesOn: boolean): void;
  /**
   * Whether nothing happened for `idleTimeoutMs`, decided at this moment. The claim counts as
   * activity, and so does the moment since which activity is known at all: where marks were lost it
   * is as if something had just happened.
   */
  expire(
    id: InstanceId,
    of: { readonly idleTimeoutMs: number; readonly claimedAt: number },
  ): Promise<Expiry>;
  /**
   * It ends for good: every replica knows within the call, for a minute; its activity is forgotten.
   */
  markEnded(id: InstanceId, end: End): Promise<void>;
  /**
   * The end that was marked within the last minute; undefined: none was. Rejects with `unavailable`
   * also where marks of that minute were lost.
   */
  ended(id: InstanceId): Promise<End | undefined>;
}

export interface RateLimits {
  /**
   * Counts one; false where the name has more than `limit` in the window, which begins with its
   * first. Never rejects: where the count is out of reach, it is this replica's own.
   */
  countWithin(
    name: string,
    limit: number,
    windowMs: number,
  ): Promise<{ readonly within: boolean; readonly retryAfterMs: number }>;
}

/** What happens, in one order for all replicas. */
export interface EventLog {
  /**
   * Tells an event to all who follow, within a second: never throws, never waits; while it can't be
   * told it waits, the oldest of 10,000 go. What several replicas tell under one `key` at about the
   * same time is there once. `told`, with the number it has on each replica: it is there.
   */
  publishEvent(event: EventRecord, key: string, told?: (id: number) => void): void;
  /**
   * A tenant's events, or everybody's, after the one with the number `after`, or from now on; ends
   * at an abort. Reads no faster than it is asked. Of the last 8,192 of all tenants none lacks;
   * where some do they are `missed`, said once. While the place that keeps them is out of reach
   * there are none.
   */
  followEvents(
    owner: Tenant | undefined,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined>;
}

/**
 * Which API keys were revoked a moment ago. The records show it too, perhaps later; what is not
 * told here is seen there.
 */
export interface Revocations {
  /**
   * Tells every replica, this one too, as soon as may be; nobody where that can't be. Called once
   * the record is gone. Never throws, never waits.
   */
  publishRevocation(keyId: string): void;
  /**
   * Reports what is told from now on. Calls `missed` where some may not have been reported: then
   * the records say what was revoked. Returns how to end it. Neither must throw.
   */
  subscribeRevocations(report: (keyId: string) => void, missed?: () => void): () => void;
}

/**
 * What became of a claim for which nothing was idle: it waits, or was refused; or who was refused
 * before has got one since. `principal`: who claims.
 */
export interface DemandSignal {
  readonly kind: 'waits' | 'refused' | 'served';
  readonly poolUid: string;
  readonly principal: string;
}

/**
 * What claims lack, for whoever sizes pools. A word that is lost is made up for by the claims that
 * come after it.
 */
export interface DemandSignals {
  /**
   * Tells every replica, this one too, as soon as may be and in no promised order; nobody where
   * that can't be. Never throws, never waits.
   */
  publishDemand(word: DemandSignal): void;
  /** Reports what is told from now on. Answers the way to end it. `report` must not throw. */
  subscribeDemand(report: (word: DemandSignal) => void): () => void;
}

/** The longest question of one replica to another, and the longest answer, in characters. */
export const MAX_REPLICA_QUESTION = 4_096;
export const MAX_REPLICA_ANSWER = 262_144;

/** What one replica asks another, for people who look inside: nothing depends on an answer. */
export interface Inquiries {
  /**
   * What the replica answers; undefined where nothing came within `withinMs`, where it does not
   * live, or where too much is asked at a time. Never rejects. Which replica is oneself is for the
   * caller to see.
   */
  askReplica(replica: string, question: string, withinMs: number): Promise<string | undefined>;
  /**
   * Returns what others ask from now on; a rejection, or an answer that is too long, is none.
   * Returns the way to end it.
   */
  answerReplicas(answer: (question: string) => Promise<string>): () => void;
}

/**
 * `problems`: what it can't do now, for which POSTs are refused. `warnings`: what it can't promise.
 * Each one sentence.
 */
export interface CoordinationHealth {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * What replicas share for a short while. Every call is one atomic step, ends in about a second, and
 * rejects with `unavailable` when the place that keeps it is out of reach: it never guesses.
 */
export interface Coordination
  extends
    Quotas,
    Claims,
    Leases,
    Requests,
    Tokens,
    Activity,
    RateLimits,
    EventLog,
    Revocations,
    DemandSignals,
    Inquiries {
  describe(): CoordinationHealth;
}

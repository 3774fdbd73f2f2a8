import type { Clock } from '../../contracts/clock.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import { inFlightAfterFailure, type PlacesPolicy } from '../../machines/pool/arithmetic.ts';
import { becameReady } from '../../machines/pool/machine.ts';
import type { PoolContext } from '../../machines/pool/events.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import type { Outbox } from '../runtime/actor-runtime.ts';

/** Counts pools that wait for a place; a pool that is turned away asks again. */
const MOST_WAITING = 16_384;
const MOST_WAITING_OF_TENANT = 4_096;

/**
 * Part of its startupTimeout in which an instance must become ready for the machine to have room
 * for more. Twice as many that start together take twice as long, and are still in time.
 */
const QUICK_PART = 1 / 3;

/** An instance that is not ready by then hangs rather than works: its place goes to another. */
const LONGEST_MS = 120_000;

export interface StartPlacesDeps {
  readonly clock: Clock;
  readonly outbox: Pick<Outbox, 'put' | 'drain'>;
  /** Has the pool launch an instance if it still lacks one; false if there is no such pool. */
  readonly grant: (uid: string) => boolean;
}

interface PoolChange {
  readonly before: { readonly context: PoolContext } | undefined;
  readonly after: { readonly context: PoolContext };
  readonly event: { readonly type: string; readonly isRefused?: true };
}

interface Place {
  readonly release: () => void;
  readonly since: number;
  /** Counts the places taken until this one, itself included. */
  readonly number: number;
}

/**
 * Hands out the places in which instances of all pools of one machine become ready. There are fewer
 * after an instance failed to start beside others, and one more for each that became ready quickly
 * while a pool waited; there is always one. Tenants take turns, and each leaves a place to the
 * others as long as there are two. An instance keeps its place until it is ready or gone, two
 * minutes at most. So every pool gets its turn, whatever the others do.
 */
export class StartPlaces {
  readonly #deps: StartPlacesDeps;
  readonly #slots: FairSlots;
  readonly #policy: PlacesPolicy;
  /** Pools that wait, with what takes their request back. */
  readonly #waiting = new Map<string, () => void>();
  /** Places of each pool, the oldest first. */
  readonly #held = new Map<string, Place[]>();
  #most: number;
  #underWay = 0;
  #taken = 0;
  /** The number of the last place that was taken while another was in use. */
  #lastBesideOthers = 0;

  constructor(policy: PlacesPolicy, deps: StartPlacesDeps) {
    this.#deps = deps;
    this.#policy = policy;
    this.#most = policy.first;
    this.#slots = new FairSlots({
      most: () => this.#most,
      mostOfTenant: (most) => Math.max(1, most - 1),
      mostWaiting: MOST_WAITING,
      mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
    });
  }

  /** Grants the pool a place once it is its turn. Does nothing while the pool waits already. */
  ask(uid: string, owner: Tenant): void {
    if (this.#waiting.has(uid)) return;
    this.#waiting.set(uid, () => undefined);
    const takeBack = this.#slots.request(tenantKey(owner), (release) => {
      this.#waiting.delete(uid);
      // not at once: some pool is in the middle of an event
      this.#deps.outbox.put({
        name: 'pool place',
        lease: undefined,
        act: () => {
          this.#take(uid, release);
          if (!this.#deps.grant(uid)) this.settle(uid, 0);
        },
      });
    });
    if (!takeBack) this.#waiting.delete(uid);
    else if (this.#waiting.has(uid)) this.#waiting.set(uid, takeBack);
  }

  /** Takes in how the start of an instance went, and how many still start. */
  changed(uid: string, { before, after, event }: PoolChange): void {
    const { context } = after;
    if (event.type === 'START_FAILED' && !event.isRefused) this.#failed(uid);
    else if (before && becameReady(before.context, context)) this.#becameReady(uid, context);
    // The pool needs it no more: none of those that start without a place is to keep it.
    if (event.type === 'PLACE' && before && context.ordered <= before.context.ordered)
      this.#giveBack(uid, 1, -1);
    const isRemoved = event.type === 'REMOVED';
    if (isRemoved || context.record.deleting !== false) this.#leaveQueue(uid);
    this.settle(uid, isRemoved ? 0 : context.counts.starting + context.ordered);
  }

  /** The pool has so many instances that start: it keeps no more places than those. */
  settle(uid: string, starting: number): void {
    this.#giveBack(uid, (this.#held.get(uid)?.length ?? 0) - starting);
  }

  #leaveQueue(uid: string): void {
    this.#waiting.get(uid)?.();
    this.#waiting.delete(uid);
  }

  #giveBack(uid: string, count: number, from = 0): void {
    const held = this.#held.get(uid);
    if (!held || count <= 0) return;
    const unused = held.splice(from, count);
    if (held.length === 0) this.#held.delete(uid);
    this.#underWay -= unused.length;
    for (const { release } of unused) release();
  }

  #becameReady(uid: string, { record }: PoolContext): void {
    const since = this.#held.get(uid)?.[0]?.since;
    if (this.#waiting.size === 0 || since === undefined) return;
    const tookMs = this.#deps.clock.now() - since;
    if (tookMs <= record.definition.startupTimeoutMs * QUICK_PART)
      this.#most = Math.min(this.#policy.most, this.#most + 1);
  }

  /** One that failed to start alone says nothing of the machine. */
  #failed(uid: string): void {
    const oldest = this.#held.get(uid)?.[0];
    if (oldest && oldest.number <= this.#lastBesideOthers)
      this.#most = inFlightAfterFailure(this.#most, this.#underWay);
  }

  #take(uid: string, release: () => void): void {
    this.#underWay += 1;
    this.#taken += 1;
    if (this.#underWay > 1) this.#lastBesideOthers = this.#taken;
    const { clock, outbox } = this.#deps;
    const held = this.#held.get(uid) ?? [];
    this.#held.set(uid, held);
    const since = clock.now();
    const cancel = clock.at(since + LONGEST_MS, () => {
      this.#giveBack(uid, held.indexOf(place) + 1);
      outbox.drain();
    });
    const place: Place = {
      since,
      number: this.#taken,
      release: () => {
        cancel();
        release();
      },
    };
    held.push(place);
  }
}

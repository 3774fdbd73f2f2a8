import type { Clock } from '../../contracts/clock.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import { inFlightAfterFailure, type PlacesPolicy } from '../../machines/pool/arithmetic.ts';
import { becameReady } from '../../machines/pool/machine.ts';
import type { PoolContext } from '../../machines/pool/events.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import type { Outbox } from '../runtime/actor-runtime.ts';

/** In total and per tenant; a pool beyond it asks again. */
const MOST_WAITING = 16_384;
const MOST_WAITING_OF_TENANT = 4_096;

/**
 * A start in this part of startupTimeout permits one more. Twice as many concurrent starts take
 * twice as long, which is still in time.
 */
const QUICK_PART = 1 / 3;

/** An instance that is unready for longer loses its slot. */
const LONGEST_MS = 120_000;

export interface StartPlacesDeps {
  readonly clock: Clock;
  readonly outbox: Pick<Outbox, 'put' | 'drain'>;
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
  readonly number: number;
}

/**
 * Limits concurrent starts over all pools of one machine: a failed start beside others lowers the
 * limit, a quick start raises it. Tenants take turns. A slot is held until the instance is ready or
 * gone, at most two minutes.
 */
export class StartPlaces {
  readonly #deps: StartPlacesDeps;
  readonly #slots: FairSlots;
  readonly #policy: PlacesPolicy;
  readonly #waiting = new Map<string, () => void>();
  /** Oldest first. */
  readonly #held = new Map<string, Place[]>();
  #most: number;
  #underWay = 0;
  #taken = 0;
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

  ask(uid: string, owner: Tenant): void {
    if (this.#waiting.has(uid)) return;
    this.#waiting.set(uid, () => undefined);
    const takeBack = this.#slots.request(tenantKey(owner), (release) => {
      this.#waiting.delete(uid);
      // deferred, because a pool may be in the middle of an event
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

  changed(uid: string, { before, after, event }: PoolChange): void {
    const { context } = after;
    if (event.type === 'START_FAILED' && !event.isRefused) this.#failed(uid);
    else if (before && becameReady(before.context, context)) this.#becameReady(uid, context);
    // Returns an unneeded slot, so that no start without a slot takes it over.
    if (event.type === 'PLACE' && before && context.ordered <= before.context.ordered)
      this.#giveBack(uid, 1, -1);
    const isRemoved = event.type === 'REMOVED';
    if (isRemoved || context.record.deleting !== false) this.#leaveQueue(uid);
    this.settle(uid, isRemoved ? 0 : context.counts.starting + context.ordered);
  }

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

  /** If the failed instance started without others, the machine is not the cause. */
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

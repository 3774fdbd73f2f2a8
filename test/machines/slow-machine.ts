import { StartPlaces } from '../../src/actors/pool/start-places.ts';
import type { PlacesPolicy } from '../../src/machines/pool/arithmetic.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { ALICE, APool, aPolicy, T0, thePool, type PoolWord } from './examples.ts';

interface Terms {
  readonly processors: number;
  /** What an instance works until it is ready, in ms of one processor. */
  readonly workMs: number;
  readonly startupTimeoutMs: number;
  /** Absent: each pool paces its own starts alone, as on a cluster. */
  readonly places?: PlacesPolicy;
}

interface PoolTerms {
  readonly replicas: number;
  readonly definition?: typeof without;
  readonly owner?: Tenant;
  /** Instead of what all work. */
  readonly workMs?: number;
  /** When it is made, in ms from the beginning. */
  readonly fromMs?: number;
}

const without = aDefinition();
const [main, ...others] = without.containers;
if (!main) throw new Error('a definition without a container');
/** A definition with a readiness probe, and the same without it. */
export const PROBED = {
  without,
  with: {
    ...without,
    containers: [
      {
        ...main,
        readinessProbe: {
          action: { kind: 'exec' as const, argv: ['true'] },
          ...{ initialDelayMs: 0, periodMs: 1_000, timeoutMs: 1_000 },
          ...{ successThreshold: 1, failureThreshold: 1 },
        },
      },
      ...others,
    ],
  },
};

interface OnePool {
  readonly pool: APool;
  readonly workMs: number;
  readonly from: number;
}

interface Starting {
  readonly pool: APool;
  readonly since: number;
  leftMs: number;
}

const STEP_MS = 100;
/** For so long an instance must live to count as started. */
const STEADY_MS = 10_000;

/**
 * Pools whose instances share the processors of one machine while they start, and fail unless they
 * are ready in time. Time goes by in steps.
 */
export class SlowMachine {
  failed = 0;
  readonly #terms: Terms;
  readonly #pools: readonly OnePool[];
  readonly #byUid: ReadonlyMap<string, OnePool>;
  readonly #places: StartPlaces | undefined;
  readonly #granting: (() => void)[] = [];
  readonly #starting = new Set<Starting>();
  readonly #steady: { readonly pool: APool; readonly at: number }[] = [];
  readonly #clock = new TestClock(T0);

  constructor(terms: Terms, pools: readonly PoolTerms[]) {
    this.#terms = terms;
    this.#pools = pools.map((one, index) => ({
      pool: aPoolOf(one, { ...terms, uid: `pool-${index}` }),
      workMs: one.workMs ?? terms.workMs,
      from: T0 + (one.fromMs ?? 0),
    }));
    this.#byUid = new Map(this.#pools.map((one) => [one.pool.context.record.uid, one]));
    this.#places =
      terms.places &&
      new StartPlaces(terms.places, {
        clock: this.#clock,
        outbox: {
          put: ({ act }) => void this.#granting.push(() => void act()),
          drain: () => undefined,
        },
        grant: (uid) => {
          const one = this.#byUid.get(uid);
          if (one) this.#send(one.pool, { type: 'PLACE', now: this.#now });
          return one !== undefined;
        },
      });
  }

  /** Lets time go by until those pools are filled, all if none is named, or it is over. */
  filledAfterMs(mostMs: number, awaited?: readonly number[]): number {
    const pools = awaited?.flatMap((index) => this.#pools[index] ?? []) ?? this.#pools;
    while (this.#now - T0 < mostMs && !pools.every(isFilled)) {
      for (const { pool, from } of this.#pools)
        if (from === this.#now) this.#send(pool, { type: 'LEAD', now: this.#now });
      this.#carryOut();
      this.#clock.advance(STEP_MS);
      this.#work();
      for (const { pool } of this.#pools)
        if ((pool.context.deadline ?? Number.POSITIVE_INFINITY) <= this.#now)
          this.#send(pool, { type: 'DEADLINE', now: this.#now });
    }
    return this.#now - T0;
  }

  get #now(): number {
    return this.#clock.now();
  }

  /** Until the pools ask for nothing more. */
  #carryOut(): void {
    let isBusy = true;
    while (isBusy) {
      isBusy = false;
      for (const one of this.#pools) isBusy = this.#take(one) || isBusy;
      for (const grant of this.#granting.splice(0)) {
        grant();
        isBusy = true;
      }
    }
  }

  #take({ pool, workMs }: OnePool): boolean {
    const intents = pool.taken();
    for (const intent of intents) {
      const { uid, owner } = pool.context.record;
      if (intent.type === 'await-place') this.#places?.ask(uid, owner);
      if (intent.type !== 'launch') continue;
      for (let n = 0; n < intent.count; n += 1) {
        this.#moves(pool, undefined, 'starting', true);
        this.#starting.add({ pool, since: this.#now, leftMs: workMs });
      }
    }
    return intents.length > 0;
  }

  #work(): void {
    const { processors, startupTimeoutMs } = this.#terms;
    const share = STEP_MS * Math.min(1, processors / Math.max(1, this.#starting.size));
    for (const each of [...this.#starting]) {
      each.leftMs -= share;
      const isLate = this.#now - each.since >= startupTimeoutMs;
      if (each.leftMs > 0 && !isLate) continue;
      this.#starting.delete(each);
      if (each.leftMs <= 0) {
        this.#moves(each.pool, 'starting', 'idle');
        this.#steady.push({ pool: each.pool, at: this.#now + STEADY_MS });
      } else this.#fails(each.pool);
    }
    while ((this.#steady[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#now) {
      const pool = this.#steady.shift()?.pool;
      if (pool) this.#send(pool, { type: 'INSTANCE_STARTED', revision: 'r1', now: this.#now });
    }
  }

  #fails(pool: APool): void {
    this.failed += 1;
    const reason = 'not ready in time';
    this.#send(pool, { type: 'START_FAILED', revision: 'r1', reason, now: this.#now });
    this.#moves(pool, 'starting', undefined);
  }

  #moves(
    pool: APool,
    from: 'starting' | undefined,
    to: 'starting' | 'idle' | undefined,
    ordered = false,
  ): void {
    this.#send(pool, { type: 'INSTANCE_MOVED', from, to, ordered, now: this.#now });
  }

  /** As the pool's host does. */
  #send(pool: APool, event: PoolWord): void {
    const before = { context: pool.context };
    pool.send(event);
    const { uid } = pool.context.record;
    this.#places?.changed(uid, { before, after: { context: pool.context }, event });
  }
}

const aPoolOf = (
  { replicas, definition = PROBED.with, owner = ALICE }: PoolTerms,
  { uid, places, startupTimeoutMs }: { readonly uid: string } & Terms,
): APool => {
  const policy = aPolicy({
    refill: { perSecond: 200, burst: 200, inFlight: 32, places },
    breaker: { failures: 3, firstPauseMs: 1_000, maxPauseMs: 300_000 },
  });
  const timed = { ...definition, startupTimeoutMs };
  return new APool({ policy, record: thePool({ uid, replicas, definition: timed, owner }) });
};

const isFilled = ({
  pool: {
    context: { counts, record },
  },
}: OnePool): boolean => counts.idle >= record.replicas;

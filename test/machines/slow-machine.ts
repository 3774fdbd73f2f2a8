import type { RefillPolicy } from '../../src/machines/pool/arithmetic.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { APool, aPolicy, T0, thePool } from './examples.ts';

interface Terms {
  readonly processors: number;
  /** What an instance works until it is ready, in ms of one processor. */
  readonly workMs: number;
  readonly startupTimeoutMs: number;
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
  readonly #pools: readonly APool[];
  readonly #starting = new Set<Starting>();
  readonly #steady: { readonly pool: APool; readonly at: number }[] = [];
  #now = T0;

  constructor(
    terms: Terms,
    pools: readonly {
      readonly replicas: number;
      readonly refill?: Partial<RefillPolicy>;
      readonly definition?: typeof without;
    }[],
  ) {
    this.#terms = terms;
    this.#pools = pools.map(({ replicas, refill, definition = PROBED.with }) => {
      const usual = { perSecond: 200, burst: 200, inFlight: 32, probedInFlight: 4 };
      const policy = aPolicy({
        refill: { ...usual, ...refill },
        breaker: { failures: 3, firstPauseMs: 1_000, maxPauseMs: 300_000 },
      });
      return new APool({ policy, record: thePool({ replicas, definition }) });
    });
  }

  /** Lets time go by until all pools are filled, or it is over; how long that took. */
  filledAfterMs(mostMs: number): number {
    for (const pool of this.#pools) pool.send({ type: 'LEAD', now: this.#now });
    while (this.#now - T0 < mostMs && !this.#pools.every(isFilled)) {
      for (const pool of this.#pools) this.#launch(pool);
      this.#now += STEP_MS;
      this.#work();
      for (const pool of this.#pools) pool.send({ type: 'DEADLINE', now: this.#now });
    }
    return this.#now - T0;
  }

  #launch(pool: APool): void {
    for (const intent of pool.taken()) {
      if (intent.type !== 'launch') continue;
      for (let n = 0; n < intent.count; n += 1) {
        this.#moves(pool, undefined, 'starting', true);
        this.#starting.add({ pool, since: this.#now, leftMs: this.#terms.workMs });
      }
    }
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
    while ((this.#steady[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#now)
      this.#steady.shift()?.pool.send({ type: 'INSTANCE_STARTED', revision: 'r1', now: this.#now });
  }

  #fails(pool: APool): void {
    this.failed += 1;
    this.#moves(pool, 'starting', undefined);
    const reason = 'not ready in time';
    pool.send({ type: 'START_FAILED', revision: 'r1', reason, now: this.#now });
  }

  #moves(
    pool: APool,
    from: 'starting' | undefined,
    to: 'starting' | 'idle' | undefined,
    ordered = false,
  ): void {
    pool.send({ type: 'INSTANCE_MOVED', from, to, ordered, now: this.#now });
  }
}

const isFilled = ({ context: { counts, record } }: APool): boolean =>
  counts.idle >= record.replicas;

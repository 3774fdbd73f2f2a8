import type { Config } from './config.ts';
import type { PoolPolicy } from './machines/pool-arithmetic.ts';

/** How many instances of one pool may be starting at once: enough to keep every start slot busy, few enough to time each fairly. */
const IN_FLIGHT = 32;

/** The pools' policy as the configuration has it. */
export const policyOf = (config: Config): PoolPolicy => ({
  replicaSemantics: config.pool.replicaSemantics,
  refill: { ...config.refill, inFlight: IN_FLIGHT },
  breaker: {
    failures: config.breaker.failures,
    firstPauseMs: config.breaker.firstPauseSeconds * 1_000,
    maxPauseMs: config.breaker.maxPauseSeconds * 1_000,
  },
});

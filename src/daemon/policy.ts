import type { Assembly } from './assembly/assembly.ts';
import type { Config } from './config/config.ts';
import type { PoolPolicy } from '../machines/pool/arithmetic.ts';

export const policyOf = (
  config: Config,
  { startsAtOnce, startPlaces }: Pick<Assembly, 'startsAtOnce' | 'startPlaces'>,
): PoolPolicy => ({
  replicaSemantics: config.pool.replicaSemantics,
  refill: { ...config.refill, inFlight: startsAtOnce, places: startPlaces },
  breaker: {
    failures: config.breaker.failures,
    firstPauseMs: config.breaker.firstPauseSeconds * 1_000,
    maxPauseMs: config.breaker.maxPauseSeconds * 1_000,
  },
});

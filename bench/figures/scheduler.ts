import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { unsharedAssembly } from '../lean-assembly.ts';
import { expectAll } from '../load.ts';
import { keysOfTeams } from '../many-keys.ts';
import type { Measure } from '../measure.ts';
import { quantile } from '../statistics.ts';

/** Claims at a time; the pool holds as many, and is full again before the next. */
const CLAIMS = 100;
/** Active beside the tenant that claims; each asks once while the pool is claimed. */
const TENANTS = 1_000;
const POOL = 'bench';
const WARM_UP = 1;

export const scheduler: Figure = {
  name: 'scheduler',
  about: `claim p50 with 1 and with ${TENANTS} active tenants, against a daemon that shares nothing fairly`,
  run: async (bench) => {
    const shared = await Daemon.start(bench.load);
    try {
      const unshared = await Daemon.start(bench.load, [], { command: unsharedAssembly() });
      try {
        const teams = Array.from({ length: TENANTS }, (_, n) => `team-${n}`);
        const [ours, theirs] = [
          await prepared(bench, shared, teams),
          await prepared(bench, unshared, teams),
        ];
        return [
          await compare(bench, 'claim p50, 1 active tenant, with the scheduler / without', [
            () => claims(bench, ours, []),
            () => claims(bench, theirs, []),
          ]),
          await compare(
            bench,
            `claim p50, ${TENANTS} active tenants, with the scheduler / without`,
            [() => claims(bench, ours, ours.keys), () => claims(bench, theirs, theirs.keys)],
          ),
        ];
      } finally {
        await unshared.dispose();
      }
    } finally {
      await shared.dispose();
    }
  },
};

interface Side {
  readonly daemon: Daemon;
  /** Of the tenants that do not claim. */
  readonly keys: readonly string[];
}

const prepared = async (bench: Bench, daemon: Daemon, teams: readonly string[]): Promise<Side> => {
  await daemon.service.createFullPool(POOL, CLAIMS);
  return { daemon, keys: await keysOfTeams(bench.load, daemon, teams) };
};

const compare = async (
  bench: Bench,
  name: string,
  [ours, theirs]: readonly [() => Promise<number>, () => Promise<number>],
): Promise<Measure> => {
  for (let n = 0; n < WARM_UP; n += 1) {
    await ours();
    await theirs();
  }
  return {
    name,
    unit: 'ms',
    better: 'less',
    reach: 1.03,
    beyond: 1,
    ...(await inPairs(bench, { ours, theirs })),
  };
};

/**
 * The p50 of claims, one request at a time; between two of them the next few of the other tenants
 * ask for their pools.
 */
const claims = async (bench: Bench, { daemon }: Side, keys: readonly string[]): Promise<number> => {
  const { service } = daemon;
  const between = keys.length / CLAIMS;
  const asks = service
    .claims(POOL, CLAIMS)
    .flatMap((claim, n): readonly Ask[] => [
      ...keys
        .slice(n * between, (n + 1) * between)
        .map((key): Ask => ({ method: 'GET', path: '/sandboxpools', key })),
      claim,
    ]);
  const isClaim = (_: unknown, n: number): boolean => asks[n]?.method === 'POST';
  const result = await bench.load.closed(service.port, asks, 1);
  const claimed = {
    latencies: result.latencies.filter(isClaim),
    statuses: result.statuses.filter(isClaim),
    bodies: result.bodies.filter(isClaim),
  };
  expectAll({ ...result, statuses: result.statuses.filter((_, n) => !isClaim(_, n)) }, 200);
  await service.giveBack({ ...result, ...claimed });
  await service.untilIdle(POOL, CLAIMS);
  await daemon.calm();
  return quantile(claimed.latencies, 0.5);
};

import { decisions } from '../decisions.ts';
import { approvalLists } from '../decided-approvals.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { expectAll } from '../load.ts';
import { keysOfTeams } from '../many-keys.ts';
import type { Measure } from '../measure.ts';
import { quantile } from '../statistics.ts';

/** Claims a round; the pool holds as many, and is full again before the next. */
const CLAIMS = 100;
const RULES = 50;
const POOL = 'bench';
const WARM_UP = 2;
/** A user has 20 that wait at most. */
const OF_USER = 5;
const USERS = 20;
const MOST_ROUNDS = 3;

/** None of them is of a claim; the last two are what is measured by itself. */
const POLICY = [
  ...Array.from(
    { length: RULES - 2 },
    (_, n) => `require operation=deletePool path=/sandboxpools/held-${n}`,
  ),
  'require operation=createApiKey',
  'deny operation=createEnv',
];

export const approvals: Figure = {
  name: 'approvals',
  about: `claims under ${RULES} rules that do not name them, held calls, and decisions`,
  run: async (bench) => {
    const gated = await Daemon.start(bench.load, ['--approvals-rules', POLICY.join(',')]);
    try {
      const off = await Daemon.start(bench.load);
      try {
        return [
          await claimsUnderRules(bench, gated, off),
          await heldCalls(bench, gated),
          await decisionsAlone(bench),
          await approvalLists(bench),
        ];
      } finally {
        await off.dispose();
      }
    } finally {
      await gated.dispose();
    }
  },
};

const claimsUnderRules = async (bench: Bench, gated: Daemon, off: Daemon): Promise<Measure> => {
  const round = (daemon: Daemon) => async (): Promise<number> => {
    const { service } = daemon;
    const result = await bench.load.closed(service.port, service.claims(POOL, CLAIMS), 1);
    expectAll(result, 201);
    await service.giveBack(result);
    await service.untilIdle(POOL, CLAIMS);
    await daemon.calm();
    return quantile(result.latencies, 0.5);
  };
  const sides = { ours: round(gated), theirs: round(off) };
  for (const { service } of [gated, off]) await service.createFullPool(POOL, CLAIMS);
  for (let n = 0; n < WARM_UP; n += 1) {
    await sides.ours();
    await sides.theirs();
  }
  return {
    name: `claim p50, ${RULES} rules that do not name it / no rules`,
    unit: 'ms',
    better: 'less',
    reach: 1.02,
    beyond: 1,
    ...(await inPairs(bench, sides)),
  };
};

/** Each is new: a request that waits already would be found, and nothing be written. */
const heldCalls = async (bench: Bench, daemon: Daemon): Promise<Measure> => {
  const { port } = daemon.service;
  let round = 0;
  const users = async (): Promise<readonly string[]> => {
    round += 1;
    const teams = Array.from({ length: USERS }, (_, n) => `held-${round}-${n}`);
    return await keysOfTeams(bench.load, daemon, teams);
  };
  const asks = (path: string, keys: readonly string[]): readonly Ask[] =>
    keys.flatMap((key) =>
      Array.from({ length: OF_USER }, (_, n): Ask => ({
        method: 'POST',
        path,
        key,
        body: JSON.stringify({
          name: `held-${n}`,
          ...(path === '/envs' ? { templateRef: { name: 'default' } } : {}),
        }),
      })),
    );
  const side = (path: string) => async (): Promise<number> => {
    const result = await bench.load.closed(port, asks(path, await users()), 1);
    expectAll(result, 403);
    return quantile(result.latencies, 0.5);
  };
  const sides = { ours: side('/api-keys'), theirs: side('/envs') };
  await sides.ours();
  await sides.theirs();
  return {
    name: 'a held call to its APPROVAL_REQUIRED / one that a rule denies, p50',
    unit: 'ms',
    better: 'less',
    reach: 2,
    beyond: 1.3,
    ...(await inPairs({ ...bench, rounds: Math.min(bench.rounds, MOST_ROUNDS) }, sides)),
  };
};

/** On a daemon of its own, where nothing else waits. */
const decisionsAlone = async (bench: Bench): Promise<Measure> => {
  const rule = 'require operation=createApiKey role=user';
  const daemon = await Daemon.start(bench.load, ['--approvals-rules', rule]);
  try {
    const { dataDir, service } = daemon;
    const [key = ''] = await keysOfTeams(bench.load, daemon, ['waits']);
    return await decisions(bench, { dataDir, ports: [service.port], key });
  } finally {
    await daemon.dispose();
  }
};

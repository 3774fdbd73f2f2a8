import { Dice } from '../builders/hostile-values.ts';
import { Arena } from './arena.ts';
import { insist } from './faults/insist.ts';
import { FaultPlan } from './fault-plan.ts';
import { Filled } from './filled.ts';
import { pause } from './hands.ts';
import type { Disturbance, Evidence, Moment, Violation } from './history.ts';
import { Load } from './load.ts';
import { GATED_POOL } from './load-gated.ts';
import { Operator } from './operator.ts';
import { Recorder } from './recorder.ts';
import { Resting } from './resting.ts';
import { Reconciling } from './reconciling.ts';
import { StoreLog } from './store-log.ts';
import { restorable } from './store-restore.ts';
import { strike } from './strike.ts';
import { violationsOf } from './verdict.ts';

export interface ChaosOptions {
  /** Determines the faults, but not their effects or the clients. */
  readonly seed: number;
  /** Ends the run, as does `atMostMs`. */
  readonly claims: number;
  readonly faults: number;
  readonly atMostMs: number;
  /** Of FAULT_KINDS; all by default. */
  readonly kinds?: readonly string[];
  readonly longestMs?: number;
  readonly clients?: number;
  /** 3 by default. */
  readonly replicas?: number;
  readonly onStrike?: (line: string) => void;
  /** Ends the load early; the run is judged all the same. */
  readonly enough?: AbortSignal;
}

export interface ChaosReport {
  readonly claims: number;
  readonly calls: number;
  readonly disturbances: readonly Disturbance[];
  readonly violations: readonly Violation[];
  readonly evidence: Evidence;
  readonly logs: readonly string[];
}

const CLIENTS = 16;
const REPLICAS = 3;
/** Below the first user's pools, so that it is met. */
const QUOTA = 10;
/** Met by pools that come and go. */
const REPLICA_QUOTA = 24;
const POOLS = [
  { user: 'ann', name: 'alpha', replicas: 8 },
  { user: 'ann', name: 'beta', replicas: 4 },
  { user: 'bob', name: 'gamma', replicas: 6 },
] as const;
const FILLED = { least: 2, most: 24 } as const;
/**
 * `cat` has the pool that is filled, `dan` the namespace that comes and goes; `eve`'s requests wait
 * for a person.
 */
const TEAMS = { ann: 'red', bob: 'blue', cat: 'blue', dan: 'green', eve: 'violet' } as const;
const GATED = { team: TEAMS.eve, grantMs: 30_000 } as const;
const GATED_REPLICAS = 6;
const SETTLE_MS = 90_000;
const ENOUGH_EVERY_MS = 1_000;
/** For a strike, and restarts after it. */
const STRIKE_MS = 300_000;
/** Of ten strikes, this many are followed by a rest. */
const RESTS_OF_TEN = 6;
/** One of this many rests is whole; so is the last. */
const WHOLE_OF = 8;

export const chaosRun = async (options: ChaosOptions): Promise<ChaosReport> => {
  const arena = await Arena.start({
    quota: QUOTA,
    replicaQuota: REPLICA_QUOTA,
    replicas: options.replicas ?? REPLICAS,
    gated: GATED,
  });
  const now = (): Moment => performance.now();
  const store = new StoreLog(arena.controlPlane.etcd, now);
  try {
    store.start();
    await arena.template();
    return await judged(options, { arena, now, store });
  } finally {
    await store.stop();
    await arena.stop();
  }
};

interface Place {
  readonly arena: Arena;
  readonly now: () => Moment;
  readonly store: StoreLog;
}

const judged = async (
  options: ChaosOptions,
  { arena, now, store }: Place,
): Promise<ChaosReport> => {
  const dice = new Dice(options.seed);
  const { contenders, controlPlane, redis } = arena;
  const user = (name: keyof typeof TEAMS): Promise<string> => arena.user(TEAMS[name], name);
  const users = {
    ann: await user('ann'),
    bob: await user('bob'),
    cat: await user('cat'),
    dan: await user('dan'),
    eve: await user('eve'),
  };
  const recorder = new Recorder(contenders, now);
  const pools = POOLS.map(({ user: of, name, replicas }) => ({ user: users[of], name, replicas }));
  const filled = new Filled({ arena, recorder, user: users.cat, ...FILLED });
  const reconciling = new Reconciling({
    arena,
    recorder,
    within: SETTLE_MS,
    grantMs: GATED.grantMs,
    pools,
    others: [users.cat, users.dan, users.eve],
  });
  await reconciling.makePools();
  await filled.make();
  await insist(async () => {
    const made = { what: 'create-pool', pool: GATED_POOL, replicas: GATED_REPLICAS } as const;
    const { status = 0 } = (await recorder.send(users.eve, 0, made)) ?? {};
    if (status !== 201 && status !== 409) throw new Error(`pool ${GATED_POOL}: ${status}`);
  });
  const load = new Load({
    recorder,
    replicas: contenders.length,
    pools,
    clients: options.clients ?? CLIENTS,
    dice,
    makers: { pools: users.ann, envs: users.bob },
    passing: users.dan,
    gated: users.eve,
    running: (of) => reconciling.running(of, dice.below(contenders.length)),
  });
  const resting = new Resting({
    arena,
    recorder,
    load,
    now,
    dice,
    users: Object.values(users),
    pools,
    quota: QUOTA,
  });
  const operator = new Operator({ arena, recorder, dice: new Dice(options.seed) });
  operator.start();
  load.start();
  const plan = new FaultPlan(
    {
      contenders,
      controlPlane,
      redis,
      filled,
      store: restorable(controlPlane, store),
      namespaces: [namespaceOf(users.ann), namespaceOf(users.bob)],
      passing: {
        namespace: namespaceOf(users.dan),
        renew: async () => {
          await user('dan');
        },
      },
    },
    { seed: options.seed, kinds: options.kinds, longestMs: options.longestMs },
  );
  const disturbances = await underFaults(options, { plan, load, resting, store, now });
  await resting.rest('whole');
  await load.stop();
  // If claims are held, forced ends of pools are held too.
  const unreconciled = await reconciling.unreconciled(load, disturbances);
  await operator.stop();
  await store.stop();
  const evidence: Evidence = {
    calls: recorder.calls,
    changes: await store.read(),
    sightings: store.sightings,
    disturbances,
    rests: resting.rests,
    rewinds: store.rewinds,
    quota: QUOTA,
    replicaQuota: REPLICA_QUOTA,
    gated: { user: users.eve, grantMs: GATED.grantMs },
    epoch: Date.now() - now(),
  };
  return {
    claims: load.claims,
    calls: recorder.calls.length,
    disturbances,
    evidence,
    logs: contenders.map(({ replica }) => replica.log),
    violations: [
      ...violationsOf(evidence),
      ...unreconciled.map((what) => ({ promise: 'nothing is stuck', what })),
      ...recorder.strange.map((what) => ({ promise: 'answers as documented', what })),
    ],
  };
};

interface Course {
  readonly plan: FaultPlan;
  readonly load: Load;
  readonly resting: Resting;
  readonly store: StoreLog;
  readonly now: () => Moment;
}

const underFaults = async (
  options: ChaosOptions,
  { plan, load, resting, store, now }: Course,
): Promise<readonly Disturbance[]> => {
  const disturbances: Disturbance[] = [];
  const deadline = now() + options.atMostMs;
  const replicas = options.replicas ?? REPLICAS;
  const calm = new Dice(options.seed);
  while (
    now() < deadline &&
    options.enough?.aborted !== true &&
    (load.claims < options.claims || disturbances.length < options.faults)
  ) {
    const faultsLeft = options.faults - disturbances.length;
    // Spreads the faults over the claims.
    if (faultsLeft > 0 && load.claims * options.faults >= options.claims * disturbances.length) {
      const done = await strike(plan.next(faultsLeft), { now, replicas, withinMs: STRIKE_MS });
      disturbances.push(...done);
      if (calm.below(10) < RESTS_OF_TEN)
        await resting.rest(calm.below(WHOLE_OF) === 0 ? 'whole' : 'brief');
      options.onStrike?.(
        `${(now() / 1_000).toFixed(0)} s: ${done.map(({ kind, victim, from, to }) => `${kind} (${victim}) ${from.toFixed(0)}-${to.toFixed(0)}`).join(' and ')}; ${load.claims} claims acknowledged`,
      );
      await store.pull().catch(() => undefined); // it may be down; the next time brings all
    } else {
      await pause(ENOUGH_EVERY_MS);
    }
  }
  return disturbances;
};

const namespaceOf = (user: string): string => user.split('/')[0] ?? '';

import { Dice } from '../hostile-values.ts';
import { Arena } from './arena.ts';
import { FaultPlan } from './fault-plan.ts';
import type { Disturbance, Evidence, Moment, Violation } from './history.ts';
import { Load } from './load.ts';
import { Recorder } from './recorder.ts';
import { Settling } from './settling.ts';
import { StoreLog } from './store-log.ts';
import { strike } from './strike.ts';
import { violationsOf } from './verdict.ts';

export interface ChaosOptions {
  /** Faults come from here: their kinds, victims and times, in order. What they meet is left to chance, and so is what clients do in between. */
  readonly seed: number;
  /** It goes on until so many claims are acknowledged and so many faults are over, or for `atMostMs`. */
  readonly claims: number;
  readonly faults: number;
  readonly atMostMs: number;
  /** Those of FAULT_KINDS that are used; all unless told. */
  readonly kinds?: readonly string[];
  readonly clients?: number;
  readonly onStrike?: (line: string) => void;
  /** Ends the load early; what was reached by then is judged. */
  readonly enough?: AbortSignal;
}

export interface ChaosReport {
  readonly claims: number;
  readonly calls: number;
  readonly disturbances: readonly Disturbance[];
  readonly violations: readonly Violation[];
  readonly evidence: Evidence;
  /** What each replica logged lately. */
  readonly logs: readonly string[];
}

const CLIENTS = 16;
/** Less than the pools of the first user hold, so that it is met. */
const QUOTA = 10;
const POOLS = [{ user: 'ann', name: 'alpha', replicas: 8 }, { user: 'ann', name: 'beta', replicas: 4 }, { user: 'bob', name: 'gamma', replicas: 6 }] as const;
const TEAMS = { ann: 'red', bob: 'blue' } as const;
/** Usage that was made anew is settled 30 s later, in rounds of 10 s. */
const SETTLE_MS = 90_000;
/** How often it is looked whether the load has done enough. */
const ENOUGH_EVERY_MS = 1_000;
/** For the faults of one strike, and what restarts after them. */
const STRIKE_MS = 240_000;

/** Load and faults on three replicas; then what the evidence says about the promises. */
export const chaosRun = async (options: ChaosOptions): Promise<ChaosReport> => {
  const dice = new Dice(options.seed);
  const arena = await Arena.start({ quota: QUOTA });
  const now = (): Moment => performance.now();
  const store = new StoreLog(arena.controlPlane.etcd, now);
  try {
    store.start();
    await arena.template();
    const users = { ann: await arena.user(TEAMS.ann, 'ann'), bob: await arena.user(TEAMS.bob, 'bob') };
    const recorder = new Recorder(arena.contenders, now);
    const pools = POOLS.map(({ user, name, replicas }) => ({ user: users[user], name, replicas }));
    const settling = new Settling({ arena, recorder, pools, within: SETTLE_MS });
    await settling.makePools();
    const load = new Load({
      recorder, replicas: arena.contenders.length, pools, clients: options.clients ?? CLIENTS, dice,
      running: (user) => settling.running(user, dice.below(arena.contenders.length)),
    });
    load.start();
    const { contenders, controlPlane, redis } = arena;
    const plan = new FaultPlan({ contenders, controlPlane, redis, namespaces: [namespaceOf(users.ann), namespaceOf(users.bob)] }, { seed: options.seed, ...(options.kinds ? { kinds: options.kinds } : {}) });
    const disturbances: Disturbance[] = [];
    const deadline = now() + options.atMostMs;
    while (now() < deadline && options.enough?.aborted !== true && (load.claims < options.claims || disturbances.length < options.faults)) {
      const faultsLeft = options.faults - disturbances.length;
      // Spread over the claims.
      if (faultsLeft > 0 && load.claims * options.faults >= options.claims * disturbances.length) {
        const done = await strike(plan.next(faultsLeft), { now, replicas: contenders.length, withinMs: STRIKE_MS });
        disturbances.push(...done);
        options.onStrike?.(`${(now() / 1_000).toFixed(0)} s: ${done.map(({ kind, victim, from, to }) => `${kind} (${victim}) ${from.toFixed(0)}-${to.toFixed(0)}`).join(' and ')}; ${load.claims} claims acknowledged`);
      } else {
        await pause(ENOUGH_EVERY_MS);
      }
    }
    await load.stop();
    const unsettled = await settling.unsettled(load, disturbances);
    await store.stop();
    const evidence: Evidence = { calls: recorder.calls, changes: await store.read(), sightings: store.sightings, disturbances, quota: QUOTA, epoch: Date.now() - now() };
    return {
      claims: load.claims, calls: recorder.calls.length, disturbances, evidence, logs: arena.contenders.map(({ replica }) => replica.log),
      violations: [
        ...violationsOf(evidence), ...unsettled.map((what) => ({ promise: 'nothing is stuck', what })),
        ...recorder.strange.map((what) => ({ promise: 'answers as documented', what })),
      ],
    };
  } finally {
    await store.stop();
    await arena.stop();
  }
};

const namespaceOf = (user: string): string => user.split('/')[0] ?? '';

const pause = (ms: number): Promise<void> => new Promise((resolve) => { setTimeout(resolve, ms); });

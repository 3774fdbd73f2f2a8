import { Dice } from '../hostile-values.ts';
import { Arena } from './arena.ts';
import type { Fault } from './faults/fault.ts';
import { FaultPlan } from './fault-plan.ts';
import type { Disturbance, Evidence, Moment, Violation } from './history.ts';
import { Load } from './load.ts';
import { Recorder } from './recorder.ts';
import { Settling } from './settling.ts';
import { StoreLog } from './store-log.ts';
import { violationsOf } from './verdict.ts';

export interface ChaosOptions {
  /** Everything random comes from here; what clients and faults meet does not. */
  readonly seed: number;
  /** It goes on until so many claims are acknowledged and so many faults are over, or for `atMostMs`. */
  readonly claims: number;
  readonly faults: number;
  readonly atMostMs: number;
  /** Those of FAULT_KINDS that are used; all unless told. */
  readonly kinds?: readonly string[];
  readonly clients?: number;
  readonly onFault?: (line: string) => void;
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
const SETTLE_MS = 60_000;
/** A lease that runs out, and the barrier of its next holder, on a machine that has other work too. */
const TAKEOVER_MS = 8_000;

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
    const plan = new FaultPlan(arena, { dice, namespaces: Object.values(users).map((user) => user.split('/')[0] ?? ''), ...(options.kinds ? { kinds: options.kinds } : {}) });
    const disturbances: Disturbance[] = [];
    const deadline = now() + options.atMostMs;
    while (now() < deadline && (load.claims < options.claims || disturbances.length < options.faults)) {
      await pause(1_000 + dice.below(3_000));
      if (disturbances.length >= options.faults) continue;
      const fault = await plan.next();
      disturbances.push(await strike(fault, now));
      options.onFault?.(`${(now() / 1_000).toFixed(0)} s: ${fault.kind} (${fault.victim}) for ${fault.lastsMs} ms; ${load.claims} claims acknowledged`);
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

const strike = async (fault: Fault, now: () => Moment): Promise<Disturbance> => {
  const from = now();
  await fault.begin();
  await pause(fault.lastsMs);
  await fault.end();
  const to = now();
  return { kind: fault.kind, victim: fault.victim, from, to, led: (fault.others === 'lead' ? from : to) + TAKEOVER_MS, removed: fault.removes ?? [] };
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => { setTimeout(resolve, ms); });

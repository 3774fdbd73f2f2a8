import { Dice } from '../../builders/hostile-values.ts';
import type { HttpClient } from '../../harness/http-client.ts';
import { pause } from '../hands.ts';
import type { Disturbance, Moment, Violation } from '../history.ts';
import { Recorder } from '../recorder.ts';
import { strike } from '../strike.ts';
import { ENV, type FleetArena, WORK } from './fleet-arena.ts';
import { envsSeen } from './fleet-envs.ts';
import { FleetFaultPlan } from './fleet-faults.ts';
import { FleetKeys, type KeyPlace, type KeysSeen } from './fleet-keys.ts';
import { FleetLoad, USER } from './fleet-load.ts';
import {
  fleetViolationsOf,
  type FleetEvidence,
  KEPT_LATE,
  type KnownSandbox,
} from './fleet-verdict.ts';

export interface FleetChaosOptions {
  readonly seed: number;
  /** Ends the run, as does `atMostMs`. */
  readonly claims: number;
  readonly faults: number;
  readonly atMostMs: number;
  readonly clients: number;
  readonly longestMs: number;
  /** After the last fault. */
  readonly keysWithinMs: number;
  /** After the last fault. */
  readonly linkedWithinMs: number;
  /** Of FLEET_FAULTS; all by default. */
  readonly kinds?: readonly string[];
  readonly onStrike?: (line: string) => void;
  /** Ends the load early; the run is judged all the same. */
  readonly enough?: AbortSignal;
}

export interface FleetChaosReport {
  readonly claims: number;
  readonly disturbances: readonly Disturbance[];
  readonly violations: readonly Violation[];
  readonly evidence: FleetEvidence;
  readonly keys: {
    readonly promoted: number;
    readonly revoked: number;
    /** Until the last wrong answer; 0 if none was wrong. */
    readonly wrongMs: number;
    readonly triedMs: number;
  };
  readonly logs: Readonly<Record<string, string>>;
}

/** For a strike, and restarts after it. */
const STRIKE_MS = 120_000;
/** Everything shown late is shown by then. */
const SHOWN_MS = 60_000;
const LOOK_MS = 250;
const PAGE = 1_000;
const LIST_MS = 30_000;

export const fleetChaosRun = async (
  arena: FleetArena,
  options: FleetChaosOptions,
): Promise<FleetChaosReport> => {
  const now = (): Moment => performance.now();
  const dice = new Dice(options.seed);
  const managers = arena.managers.map(({ client }) => client(USER));
  const recorder = new Recorder(arena.managers, now);
  const load = new FleetLoad({
    recorder,
    dice: new Dice(options.seed + 1),
    managers: managers.length,
    clients: options.clients,
    pools: [...arena.workers.map(({ clusterId }) => `${clusterId}::${WORK}`), ENV],
    withFiles: new Set(arena.workers.flatMap((each) => (each.hasFiles ? [each.clusterId] : []))),
    running: async () => await runningAt(managers[dice.below(managers.length)]).catch(() => []),
  });
  const keys = new FleetKeys(managers, new Dice(options.seed + 2));
  keys.start();
  load.start();
  const plan = new FleetFaultPlan(arena, options);
  const disturbances: Disturbance[] = [];
  const isEnough = (): boolean =>
    options.enough?.aborted === true ||
    (load.claims >= options.claims && disturbances.length >= options.faults);
  for (const deadline = now() + options.atMostMs; !isEnough() && now() < deadline;) {
    const left = options.faults - disturbances.length;
    // Spreads faults over the claims; the last one ends the run.
    if (left > 0 && load.claims * options.faults >= options.claims * (disturbances.length + 1)) {
      const done = await strike(plan.next(left), {
        ...{ now, replicas: managers.length, withinMs: STRIKE_MS },
      });
      disturbances.push(...done);
      options.onStrike?.(
        `${(now() / 1_000).toFixed(0)} s: ${done.map(({ kind, victim, from, to }) => `${kind} (${victim}) ${(to - from).toFixed(0)} ms`).join(' and ')}; ${load.claims} claims, ${disturbances.length} faults`,
      );
    } else {
      await pause(LOOK_MS);
    }
  }
  const calm = now();
  const keysTried = async (): Promise<KeysSeen> => {
    await keys.stop();
    return await keys.seen(placesOf(arena), calm + options.keysWithinMs);
  };
  const [linkedMs, seen] = await Promise.all([
    // beyond its limit in any case, if they are never linked
    settled(arena.untilLinked()).then(() => now() - calm),
    keysTried(),
    load.stop(),
  ]);
  const look = async (): Promise<FleetEvidence> => ({
    calls: recorder.calls,
    known: (await Promise.all(arena.workers.map(knownAt))).flat(),
    listed: await Promise.all(
      managers.map(async (client) => new Set((await runningAt(client)).map(({ id }) => id))),
    ),
    effects: load.effects,
    keys: seen.keys,
    envs: await envsSeen(arena),
    linked: { afterMs: linkedMs, withinMs: options.linkedWithinMs },
  });
  let evidence = await look();
  for (
    const deadline = now() + SHOWN_MS;
    fleetViolationsOf(evidence).some(({ promise }) => KEPT_LATE.includes(promise)) &&
    now() < deadline;
  ) {
    await pause(LOOK_MS);
    evidence = await look();
  }
  return {
    claims: load.claims,
    disturbances,
    evidence,
    keys: {
      ...keys.counts,
      wrongMs: Math.max(0, (seen.wrongUntil ?? calm) - calm),
      triedMs: seen.triedAt - calm,
    },
    logs: Object.fromEntries([
      ...arena.managers.map(({ replica }) => [replica.name, replica.log]),
      ...arena.workers.map((worker) => [worker.clusterId, worker.log()]),
    ]),
    violations: [
      ...fleetViolationsOf(evidence),
      ...recorder.strange.map((what) => ({ promise: 'answers as documented', what })),
    ],
  };
};

const settled = (work: Promise<unknown>): Promise<unknown> => work.catch(() => undefined);

const placesOf = ({ workers, managers }: FleetArena): readonly KeyPlace[] => [
  ...workers.map((worker) => ({ name: worker.clusterId, port: worker.port() })),
  ...managers.map(({ replica }) => ({ name: replica.name, port: replica.port })),
];

interface Listed {
  readonly id: string;
  readonly name?: string;
  readonly isRunning: boolean;
}

const listOf = async (client: HttpClient, query: string): Promise<readonly Listed[]> => {
  const found: Listed[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const { status, json, text } = await client.get(
      `/sandboxes?limit=${PAGE}&offset=${offset}${query}`,
      { signal: AbortSignal.timeout(LIST_MS) },
    );
    if (status !== 200) throw new Error(`a list is answered with ${status}: ${text}`);
    const items = json.items ?? [];
    for (const item of items) {
      const { name } = (item['metadata'] ?? {}) as { readonly name?: string };
      found.push({ id: String(item['sandboxId']), isRunning: item['status'] === 'Running', name });
    }
    if (items.length < PAGE) return found;
  }
};

const runningAt = async (client: HttpClient | undefined): Promise<readonly Listed[]> =>
  client ? await listOf(client, '&phase=Running') : [];

/** Also finished ones, by the manager's names. */
const knownAt = async (worker: FleetArena['workers'][number]): Promise<readonly KnownSandbox[]> =>
  (await listOf(worker.client(), '')).map((each) => ({
    ...each,
    id: `${worker.clusterId}.${each.id}`,
  }));

import type { ReadinessProbe } from '../../../model/templates/readiness-probe.ts';
import type { Vitals } from '../../../model/sandbox.ts';
import type { InstanceDefinition } from '../../../model/templates/template.ts';

export interface NamedProbe {
  readonly endpoint?: string;
  readonly probe: ReadinessProbe;
}

export interface ProbeReport {
  readonly endpoint?: string;
  readonly failure?: string;
}

export interface ReadinessDeps {
  /** Resolves with the reason of a failure. Never rejects. */
  readonly run: (id: string, tenant: string, probe: ReadinessProbe) => Promise<string | undefined>;
  readonly report: (id: string, vitals: Vitals) => void;
  readonly noteReady: (id: string) => void;
  /** A frozen instance keeps its state and is not probed. */
  readonly isFrozen?: (id: string) => boolean;
  readonly later: (milliseconds: number, act: () => void) => () => void;
  readonly random: () => number;
}

/** In ms. Doubles up to the period. */
const FIRST_PAUSE_MS = 50;
/** Keeps instances that start together from being probed together. */
const JITTER = 0.1;
const REASON_LIMIT = 300;

export const probesOf = ({
  containers,
  endpoints = {},
}: InstanceDefinition): readonly NamedProbe[] | undefined => {
  const ofContainers = containers.flatMap(({ readinessProbe }) =>
    readinessProbe ? [{ probe: readinessProbe }] : [],
  );
  const ofEndpoints = Object.entries(endpoints).flatMap(([endpoint, { readinessProbe }]) =>
    readinessProbe ? [{ endpoint, probe: readinessProbe }] : [],
  );
  const probes = [...ofContainers, ...ofEndpoints];
  return probes.length > 0 ? probes : undefined;
};

/**
 * Reports the readiness of instances on change only. An instance is starting until all probes pass,
 * then available, and unavailable while a probe fails.
 */
export class Readiness {
  readonly #deps: ReadinessDeps;
  readonly #probed = new Map<string, ProbedInstance>();

  constructor(deps: ReadinessDeps) {
    this.#deps = deps;
  }

  /** To be called before the start. */
  expect(id: string, { tenant, probes, wasReady = false }: Expected): void {
    this.#probed.set(
      id,
      new ProbedInstance(id, probes, {
        ...this.#deps,
        run: (probe) => this.#deps.run(id, tenant, probe),
        wasReady,
      }),
    );
  }

  take(id: string, vitals: Vitals): void {
    const probed = this.#probed.get(id);
    if (vitals.kind === 'available' && probed) return probed.begin(vitals.startedAt);
    if (vitals.kind === 'gone') this.#forget(id);
    this.#deps.report(id, vitals);
  }

  vitalsOf(id: string): Vitals | undefined {
    return this.#probed.get(id)?.vitals;
  }

  /** Concurrent callers share the result. */
  async check(id: string): Promise<readonly ProbeReport[]> {
    return await (this.#probed.get(id)?.check() ?? []);
  }

  stop(): void {
    for (const id of [...this.#probed.keys()]) this.#forget(id);
  }

  #forget(id: string): void {
    this.#probed.get(id)?.end();
    this.#probed.delete(id);
  }
}

export interface Expected {
  readonly tenant: string;
  readonly probes: readonly NamedProbe[];
  readonly wasReady?: boolean;
}

interface ProbedDeps extends Omit<ReadinessDeps, 'run'> {
  readonly run: (probe: ReadinessProbe) => Promise<string | undefined>;
  readonly wasReady: boolean;
}

interface ProbeState {
  readonly named: NamedProbe;
  ready: boolean;
  passes: number;
  failures: number;
  pauseMs: number;
  failure: string | undefined;
  callOff: () => void;
}

class ProbedInstance {
  readonly #id: string;
  readonly #deps: ProbedDeps;
  readonly #states: readonly ProbeState[];
  #startedAt: number | undefined;
  #everReady: boolean;
  #said: Vitals | undefined;
  #over = false;
  #checking: Promise<readonly ProbeReport[]> | undefined;

  constructor(id: string, probes: readonly NamedProbe[], deps: ProbedDeps) {
    this.#id = id;
    this.#deps = deps;
    this.#everReady = deps.wasReady;
    this.#states = probes.map((named) => ({
      named,
      ready: false,
      passes: 0,
      failures: 0,
      pauseMs: FIRST_PAUSE_MS,
      failure: undefined,
      callOff: () => {},
    }));
  }

  get vitals(): Vitals | undefined {
    if (this.#startedAt === undefined) return undefined;
    const waiting = this.#states.find(({ ready }) => !ready);
    if (!waiting) return { kind: 'available', startedAt: this.#startedAt };
    const reason =
      waiting.failure === undefined
        ? undefined
        : `${nameOf(waiting.named)}: ${waiting.failure}`.slice(0, REASON_LIMIT);
    if (this.#everReady)
      return {
        kind: 'unavailable',
        startedAt: this.#startedAt,
        reason: reason ?? 'its probes have not passed again yet',
      };
    return { kind: 'starting', ...(reason === undefined ? {} : { reason }) };
  }

  begin(startedAt: number): void {
    if (this.#startedAt !== undefined || this.#over) return;
    this.#startedAt = startedAt;
    this.#said = this.vitals;
    for (const state of this.#states)
      state.callOff = this.#deps.later(
        state.named.probe.initialDelayMs,
        () => void this.#probe(state),
      );
  }

  end(): void {
    this.#over = true;
    for (const { callOff } of this.#states) callOff();
  }

  check(): Promise<readonly ProbeReport[]> {
    this.#checking ??= Promise.all(
      this.#states.map(async ({ named: { endpoint, probe } }): Promise<ProbeReport> => {
        const failure = await this.#deps.run(probe);
        return {
          ...(endpoint === undefined ? {} : { endpoint }),
          ...(failure === undefined ? {} : { failure }),
        };
      }),
    ).finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #probe(state: ProbeState): Promise<void> {
    const isFrozen = (): boolean => this.#deps.isFrozen?.(this.#id) === true;
    const failure = isFrozen() ? undefined : await this.#deps.run(state.named.probe);
    if (this.#over) return;
    if (!isFrozen()) {
      count(state, failure);
      this.#tell();
    }
    state.callOff = this.#deps.later(this.#pauseOf(state), () => void this.#probe(state));
  }

  #pauseOf(state: ProbeState): number {
    const { periodMs } = state.named.probe;
    if (state.ready && state.failures === 0)
      return periodMs * (1 - JITTER + 2 * JITTER * this.#deps.random());
    const pause = Math.min(state.pauseMs, periodMs);
    state.pauseMs *= 2;
    // The failure threshold counts periods.
    return state.ready ? periodMs : pause;
  }

  #tell(): void {
    const vitals = this.vitals;
    if (
      !vitals ||
      (vitals.kind === this.#said?.kind &&
        (vitals.kind !== 'starting' ||
          this.#said.kind !== 'starting' ||
          vitals.reason === this.#said.reason))
    )
      return;
    this.#said = vitals;
    if (vitals.kind === 'available' && !this.#everReady) {
      this.#everReady = true;
      this.#deps.noteReady(this.#id);
    }
    this.#deps.report(this.#id, vitals);
  }
}

const count = (state: ProbeState, failure: string | undefined): void => {
  const { successThreshold, failureThreshold } = state.named.probe;
  state.passes = failure === undefined ? state.passes + 1 : 0;
  state.failures = failure === undefined ? 0 : state.failures + 1;
  if (failure !== undefined) state.failure = failure;
  if (!state.ready && state.passes >= successThreshold) {
    state.ready = true;
    state.failure = undefined;
  }
  if (state.ready && state.failures >= failureThreshold) {
    state.ready = false;
    state.pauseMs = FIRST_PAUSE_MS;
  }
};

const nameOf = ({ endpoint }: NamedProbe): string =>
  endpoint === undefined ? 'readinessProbe' : `readinessProbe of endpoint ${endpoint}`;

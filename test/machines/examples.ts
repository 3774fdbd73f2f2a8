import { createActor, type Actor } from 'xstate';
import type { SandboxEvent, SandboxInput, SandboxIntent } from '../../src/machines/sandbox-events.ts';
import type { PoolPolicy } from '../../src/machines/pool-arithmetic.ts';
import { CLOSED_BREAKER } from '../../src/model/pool.ts';
import { poolMachine, type PoolContext, type PoolEvent, type PoolInput, type PoolIntent } from '../../src/machines/pool-machine.ts';
import { sandboxMachine } from '../../src/machines/sandbox-machine.ts';
import { NO_INSTANCES, type PoolCounts, type PoolRecord } from '../../src/model/pool.ts';
import type { Birth, InstanceFact, InstanceRecord, Vitals } from '../../src/model/sandbox.ts';
import { aDefinition, ALICE, anOrder } from '../support/instance-orders.ts';

export { aClaim, ALICE } from '../support/instance-orders.ts';

/** When the examples' clocks begin. */
export const T0 = 1_700_000_000_000;

export const aBirth = (part: Partial<Birth['record']> = {}): Birth => {
  const { record, definition } = anOrder();
  return { definition, record: { ...record, createdAt: T0, ...part } };
};

export const aRecord = (part: Partial<InstanceRecord> = {}): InstanceRecord => ({ ...aBirth({ id: 'one' }).record, revision: '1', state: 'idle', ...part });

export const AVAILABLE: Vitals = { kind: 'available', startedAt: T0 };
export const STARTING: Vitals = { kind: 'starting' };
export const UNAVAILABLE: Vitals = { kind: 'unavailable', startedAt: T0, reason: 'not answering' };
export const GONE: Vitals = { kind: 'gone', exitCode: null, reason: 'ended' };

export const aFact = (record: InstanceRecord | undefined = aRecord(), vitals: Vitals = AVAILABLE): InstanceFact & { readonly record: InstanceRecord } =>
  ({ id: 'one', record: record ?? aRecord(), vitals });

/** What a look shows once the record is gone. */
export const noRecord = (vitals: Vitals = GONE): InstanceFact => ({ id: 'one', record: undefined, vitals });

/** An actor and all that it asked for, the oldest first. */
export class ASandbox {
  readonly intents: SandboxIntent[] = [];
  readonly #actor: Actor<typeof sandboxMachine>;

  constructor(input: SandboxInput) {
    this.#actor = createActor(sandboxMachine, { input });
    this.#actor.on('*', (intent) => { this.intents.push(intent); });
    this.#actor.start();
  }

  static born(birth: Birth = aBirth({ id: 'one' })): ASandbox { return new ASandbox({ now: T0, birth }); }

  static found(record: InstanceRecord = aRecord(), vitals: Vitals = AVAILABLE): ASandbox {
    return new ASandbox({ now: T0, fact: aFact(record, vitals) });
  }

  get context() { return this.#actor.getSnapshot().context; }
  get state(): string { return pathOf(this.#actor.getSnapshot().value); }
  get last(): SandboxIntent | undefined { return this.intents.at(-1); }

  send(...events: readonly SandboxEvent[]): this {
    for (const event of events) this.#actor.send(event);
    return this;
  }
}

/** `stopping.releasing` and the like. */
export const pathOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  const [entry] = Object.entries(value ?? {});
  return entry ? `${entry[0]}.${pathOf(entry[1])}` : '';
};

export const aPolicy = (part: Partial<PoolPolicy> = {}): PoolPolicy => ({
  replicaSemantics: 'total',
  refill: { perSecond: 10, burst: 100, inFlight: 16 },
  breaker: { failures: 3, firstPauseMs: 1_000, maxPauseMs: 8_000 },
  ...part,
});

export const aPool = (part: Partial<PoolRecord> = {}): PoolRecord => ({
  uid: 'pool-uid', revision: '1', name: 'default', owner: ALICE, createdAt: T0, replicas: 2, templateName: 'default', templateVersion: '1',
  labels: {}, annotations: {}, definition: aDefinition(), updateRevision: 'r1', breaker: CLOSED_BREAKER, deleting: false,
  ...part,
});

/** Counts that are zero but for what is given. */
export const counts = (part: Partial<PoolCounts> = {}): PoolCounts => ({ ...NO_INSTANCES, ...part });

/** A pool's actor and all that it asked for, the oldest first. */
export class APool {
  readonly intents: PoolIntent[] = [];
  readonly #actor: Actor<typeof poolMachine>;

  constructor(input: Partial<PoolInput> = {}) {
    this.#actor = createActor(poolMachine, { input: { record: aPool(), policy: aPolicy(), now: T0, ...input } });
    this.#actor.on('*', (intent) => { this.intents.push(intent); });
    this.#actor.subscribe({ error: () => undefined });
    this.#actor.start();
  }

  get context(): PoolContext { return this.#actor.getSnapshot().context; }
  get error(): unknown { return this.#actor.getSnapshot().error; }
  get lifecycle(): string { return pathOf(this.#actor.getSnapshot().value.lifecycle); }
  get scale(): string { return this.#actor.getSnapshot().value.scale; }
  get breaker(): string { return this.#actor.getSnapshot().value.breaker; }

  send(...events: readonly PoolEvent[]): this {
    for (const event of events) this.#actor.send(event);
    return this;
  }

  /** What was asked for since the last time. */
  taken(): readonly PoolIntent[] { return this.intents.splice(0); }
}

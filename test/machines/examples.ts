import { createActor, type Actor } from 'xstate';
import type {
  SandboxEvent,
  SandboxInput,
  SandboxIntent,
} from '../../src/machines/sandbox/events.ts';
import type { PoolPolicy } from '../../src/machines/pool/arithmetic.ts';
import { InstanceCounts, type Move } from '../../src/actors/pool/pool-snapshot.ts';
import type {
  PoolContext,
  PoolEvent,
  PoolInput,
  PoolIntent,
} from '../../src/machines/pool/events.ts';
import { isTripped, rolloutStateOf, shortageOf } from '../../src/machines/pool/decisions.ts';
import { poolMachine } from '../../src/machines/pool/machine.ts';
import { sandboxMachine } from '../../src/machines/sandbox/machine.ts';
import { NO_INSTANCES, type PoolCounts, type PoolRecord } from '../../src/model/pools/pool.ts';
import type { LaunchOrder, InstanceFact, InstanceRecord, Vitals } from '../../src/model/sandbox.ts';
import { aStoredPool } from '../support/builders/a-pool.ts';
import { anOrder } from '../support/builders/instance-orders.ts';

export { aClaim, ALICE } from '../support/builders/instance-orders.ts';

/** When the examples' clocks begin. */
export const T0 = 1_700_000_000_000;

export const aLaunchOrder = (part: Partial<LaunchOrder['record']> = {}): LaunchOrder => {
  const { record, definition } = anOrder();
  return { definition, record: { ...record, createdAt: T0, ...part } };
};

export const aRecord = (part: Partial<InstanceRecord> = {}): InstanceRecord => ({
  ...aLaunchOrder({ id: 'one' }).record,
  revision: '1',
  state: 'idle',
  ...part,
});

export const AVAILABLE: Vitals = { kind: 'available', startedAt: T0 };
export const STARTING: Vitals = { kind: 'starting' };
export const UNAVAILABLE: Vitals = { kind: 'unavailable', startedAt: T0, reason: 'not answering' };
export const GONE: Vitals = { kind: 'gone', exitCode: null, reason: 'ended' };

export const aFact = (
  record: InstanceRecord | undefined = aRecord(),
  vitals: Vitals = AVAILABLE,
): InstanceFact & { readonly record: InstanceRecord } => ({
  id: 'one',
  record: record ?? aRecord(),
  vitals,
});

/** What a look shows once the record is gone. */
export const noRecord = (vitals: Vitals = GONE): InstanceFact => ({
  id: 'one',
  record: undefined,
  vitals,
});

/** An actor and all that it asked for, the oldest first. */
export class ASandbox {
  readonly intents: SandboxIntent[] = [];
  readonly #actor: Actor<typeof sandboxMachine>;

  constructor(input: SandboxInput) {
    this.#actor = createActor(sandboxMachine, { input });
    this.#actor.on('*', (intent) => {
      this.intents.push(intent);
    });
    this.#actor.start();
  }

  static born(launchOrder: LaunchOrder = aLaunchOrder({ id: 'one' })): ASandbox {
    return new ASandbox({ now: T0, launchOrder });
  }

  static found(record: InstanceRecord = aRecord(), vitals: Vitals = AVAILABLE): ASandbox {
    return new ASandbox({ now: T0, fact: aFact(record, vitals) });
  }

  get context() {
    return this.#actor.getSnapshot().context;
  }
  get state(): string {
    return pathOf(this.#actor.getSnapshot().value);
  }
  get last(): SandboxIntent | undefined {
    return this.intents.at(-1);
  }

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

/** The pool to which instances of these examples belong. */
export const thePool = (part: Partial<PoolRecord> = {}): PoolRecord =>
  aStoredPool({ uid: 'pool-uid', createdAt: T0, ...part });

/** Counts that are zero but for what is given. */
export const counts = (part: Partial<PoolCounts> = {}): PoolCounts => ({
  ...NO_INSTANCES,
  ...part,
});

type Counted = Extract<PoolEvent, { type: 'RECORD' | 'INSTANCE_MOVED' }>;

/** What a pool is told, without the counts that its host adds. */
export type PoolWord =
  | Exclude<PoolEvent, Counted>
  | Omit<Extract<PoolEvent, { type: 'RECORD' }>, 'updated'>
  | {
      readonly type: 'INSTANCE_MOVED';
      readonly from: Move['from'];
      readonly to: Move['to'];
      readonly ordered: boolean;
      readonly now: number;
      readonly revision?: string;
    };

/**
 * A pool's actor and all that it asked for, the oldest first. It counts as the pool's host does.
 */
export class APool {
  readonly intents: PoolIntent[] = [];
  readonly #counts = new InstanceCounts();
  readonly #actor: Actor<typeof poolMachine>;

  /** `counts`: there already, of the record's revision; `stale`: of another. */
  constructor({
    counts: current = {},
    stale = {},
    ...input
  }: Partial<Omit<PoolInput, 'counted'>> & {
    readonly counts?: Partial<PoolCounts>;
    readonly stale?: Partial<PoolCounts>;
  } = {}) {
    const record = input.record ?? thePool();
    this.#place(record, current, record.updateRevision);
    this.#place(record, stale, OLD);
    this.#actor = createActor(poolMachine, {
      input: {
        policy: aPolicy(),
        now: T0,
        ...input,
        record,
        counted: this.#counts.counted(record.uid, record.updateRevision),
      },
    });
    this.#actor.on('*', (intent) => {
      this.intents.push(intent);
    });
    this.#actor.subscribe({ error: () => undefined });
    this.#actor.start();
  }

  get context(): PoolContext {
    return this.#actor.getSnapshot().context;
  }
  get error(): unknown {
    return this.#actor.getSnapshot().error;
  }
  get lifecycle(): string {
    return pathOf(this.#actor.getSnapshot().value);
  }
  get scale(): string {
    const shortage = shortageOf(this.context);
    return shortage > 0 ? 'short' : shortage < 0 ? 'surplus' : 'settled';
  }
  get breaker(): string {
    return isTripped(this.context) ? 'open' : 'closed';
  }
  get rollout(): string {
    return rolloutStateOf(this.context);
  }

  /** A move without a revision is of an instance of the pool's own. */
  send(...words: readonly PoolWord[]): this {
    for (const word of words) this.#actor.send(this.#countedIn(word));
    return this;
  }

  /** What was asked for since the last time. */
  taken(): readonly PoolIntent[] {
    return this.intents.splice(0);
  }

  #countedIn(word: PoolWord): PoolEvent {
    const { uid, updateRevision } = this.context.record;
    if (word.type === 'RECORD')
      return { ...word, updated: this.#counts.counted(uid, word.record.updateRevision).updated };
    if (word.type !== 'INSTANCE_MOVED') return word;
    const { from, to, revision = updateRevision, ordered, now } = word;
    this.#counts.move({ poolUid: uid, revision, from, to });
    return {
      type: 'INSTANCE_MOVED',
      counted: this.#counts.counted(uid, updateRevision),
      ordered,
      now,
    };
  }

  #place({ uid }: PoolRecord, has: Partial<PoolCounts>, revision: string): void {
    for (const [place, count] of Object.entries(has) as [keyof PoolCounts, number][]) {
      for (let i = 0; i < count; i++)
        this.#counts.move({ poolUid: uid, revision, from: undefined, to: place });
    }
  }
}

/** The revision of a pool before its last edit. */
export const OLD = 'r0';

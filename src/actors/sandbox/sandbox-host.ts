import type { SnapshotFrom } from 'xstate';
import type { Lease } from '../../contracts/coordination/leases.ts';
import { statusOf } from '../../machines/sandbox/arithmetic.ts';
import type { PoolEvent } from '../../machines/pool/events.ts';
import type {
  LaunchInput,
  SandboxEvent,
  SandboxInput,
  SandboxIntent,
  SandboxTag,
} from '../../machines/sandbox/events.ts';
import type { sandboxMachine } from '../../machines/sandbox/machine.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { RebuildOutcome } from '../../model/inspection.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import { shardOf } from '../../model/shards.ts';
import {
  ActorHost,
  type ActorKind,
  type Change,
  pathOf,
  type Waiters,
} from '../runtime/actor-host.ts';
import type { ActorRuntime, OutboxEntry } from '../runtime/actor-runtime.ts';
import type { PoolHost } from '../pool/pool-host.ts';
import { publishActivity, type EventRecorder, sandboxCauseOf } from './sandbox-moves.ts';
import type { IdleInstances } from './idle-instances.ts';
import {
  countedAs,
  placementOf,
  type Placement,
  recordIn,
  shown,
  stateOf,
  tagsOf,
  type SandboxSnapshot,
} from './sandbox-snapshot.ts';
import type { RetirementLimiter } from './retirement-limiter.ts';
import { SandboxActors, type SandboxActor } from './sandbox-actors.ts';
import { isLeaders, sandboxEffects, startReport } from './sandbox-effects.ts';
import type { SandboxIndex } from './sandbox-index.ts';
import type { ShardParticipant } from '../runtime/shard-participant.ts';
import type { SupervisorDeps } from './supervisor-deps.ts';

type Snapshot = SnapshotFrom<typeof sandboxMachine>;
type Moved = Change<Snapshot, SandboxEvent>;

export interface SandboxHostDeps extends Pick<
  SupervisorDeps,
  'driver' | 'coordination' | 'history'
> {
  readonly participant: ShardParticipant | undefined;
  readonly runtime: ActorRuntime;
  readonly shared: SharedIndexes;
  readonly events: EventRecorder | undefined;
  readonly leads: (shard: number) => boolean;
  readonly parts: () => {
    readonly pools: Pick<PoolHost, 'send' | 'moved' | 'knowsToStart'>;
    readonly idle: Pick<IdleInstances, 'lines'>;
  };
  readonly listener: SandboxListener;
}

export interface SharedIndexes {
  readonly index: SandboxIndex;
  readonly waiters: Waiters;
  readonly retirements: RetirementLimiter;
}

export interface SandboxListener {
  readonly found: (poolUid: string) => void;
  readonly ended: (id: string) => void;
  readonly startFailed: (id: string, reason: string, isPassing: boolean) => void;
}

/** Updates indexes after each transition. */
export class SandboxHost {
  readonly actors: ActorHost<Snapshot, SandboxEvent, SandboxIntent, SandboxInput>;
  readonly #deps: SandboxHostDeps;
  readonly #carryOut: ReturnType<typeof sandboxEffects>;
  readonly #factory = new SandboxActors();
  #started = false;
  /** A waiter reads the same view several times. */
  #last: { readonly of: Snapshot; readonly shown: SandboxSnapshot } | undefined;
  #report: PoolEvent | undefined;

  constructor(deps: SandboxHostDeps) {
    this.#deps = deps;
    this.#carryOut = sandboxEffects({ ...deps, clock: deps.runtime.clock });
    this.actors = new ActorHost(deps.runtime, this.#kind());
  }

  get(id: string): SandboxSnapshot | undefined {
    const snapshot = this.actors.snapshot(id);
    if (!snapshot) return undefined;
    if (this.#last?.of !== snapshot) this.#last = { of: snapshot, shown: shown(snapshot) };
    return this.#last.shown;
  }

  /** An instance that appears from now on is new. */
  begin(): void {
    this.#started = true;
  }

  launch(input: LaunchInput): void {
    this.#host(input.launchOrder.record.id, input);
  }

  learn(fact: InstanceFact): void {
    const { id, record } = fact;
    const now = this.#deps.runtime.clock.now();
    const working = this.actors.snapshot(id)?.context.working;
    if (working !== undefined && record && fact.afresh && !this.#isBusy(id)) {
      this.actors.make(id, { now, fact: { ...fact, record } });
      for (let begun = 0; begun < working; begun++)
        this.actors.send(id, { type: 'WORK_BEGAN', now });
      this.#deps.runtime.outbox.drain();
      return;
    }
    if (this.actors.send(id, { type: 'FACT', fact, now })) return;
    if (!record) this.actors.rebuilds.forget(id);
    if (!record || this.actors.rebuilds.has(id)) return;
    this.#host(id, { now, fact: { ...fact, record } });
    this.#deps.listener.found(record.poolUid);
    this.#deps.runtime.outbox.drain();
  }

  /**
   * Answers `busy` while an intent is pending, whose answer the new actor would not know, or while
   * a claim holds the instance.
   */
  async rebuild(id: InstanceId): Promise<RebuildOutcome> {
    if (this.#isBusy(id)) return 'busy';
    const fact = await this.#deps.driver.read(id);
    if (!this.actors.has(id) && !this.actors.rebuilds.has(id)) return 'unknown';
    if (this.#isBusy(id)) return 'busy';
    this.actors.rebuilds.forget(id);
    this.learn({ ...fact, afresh: true });
    this.#deps.runtime.outbox.drain();
    return 'rebuilt';
  }

  #isBusy(id: string): boolean {
    return this.actors.pendingOf(id).length > 0 || this.#deps.shared.index.isHeld(id);
  }

  #host(id: string, input: SandboxInput): void {
    const isOrdered = 'launchOrder' in input;
    const made = this.actors.make(id, input, isOrdered ? 'ORDERED' : 'FOUND');
    if (made && (isOrdered || this.#started))
      this.#deps.events?.record(made.context, { reason: 'Created' }, { done: isOrdered });
  }

  #kind(): ActorKind<Snapshot, SandboxEvent, SandboxIntent, SandboxInput> {
    return {
      name: 'sandbox',
      entity: 'sandbox',
      prefix: 's',
      create: (input) => this.#factory.make(input),
      dispose: (actor) => {
        this.#factory.drop(actor as SandboxActor);
      },
      pathOf: ({ value }) => pathOf(value),
      countedAs: ({ value }) => stateOf(value),
      listed: (_, { context }) => ({
        group: context.poolUid,
        born: recordIn(context)?.createdAt ?? 0,
      }),
      causeOf: sandboxCauseOf,
      isOver: ({ status }) => status === 'done',
      deadlineOf: ({ context }) => context.deadline,
      due: (id, now) => this.actors.send(id, { type: 'DEADLINE', now }),
      intent: (id, intent) => this.#entry(id, intent),
      changed: (id, change) => {
        this.#changed(id, change);
      },
      threw: (id, last) => {
        this.#threw(id, last);
      },
      remake: async (id) => {
        if (this.actors.pendingOf(id).length > 0)
          throw new Error('an answer is awaited that the new one would not know');
        this.learn(await this.#deps.driver.read(id as InstanceId));
      },
    };
  }

  #entry(id: string, intent: SandboxIntent): Omit<OutboxEntry, 'of'> | undefined {
    const { runtime } = this.#deps;
    if (intent.type === 'report-start') {
      this.#reportStart(id, intent);
      return undefined;
    }
    const lease = isLeaders(intent) ? this.#leaseOf(id) : undefined;
    return {
      name: intent.type,
      lease,
      act: async () => {
        const event = await this.#carryOut(id, intent, () => lease?.held() ?? this.#isWanted(id));
        if (event) this.actors.send(id, event);
      },
      dropped: () => {
        this.actors.send(id, { type: 'NOT_LEADING', now: runtime.clock.now() });
      },
    };
  }

  /** The start of an instance launched for one claim is not reported to its pool. */
  #reportStart(id: string, intent: Extract<SandboxIntent, { type: 'report-start' }>): void {
    const { runtime, listener } = this.#deps;
    const context = this.actors.snapshot(id)?.context;
    const record = context && recordIn(context);
    if (record?.claimBy === undefined)
      this.#report =
        context && startReport(intent, record?.updateRevision ?? '', runtime.clock.now());
    else if (intent.outcome !== 'started')
      listener.startFailed(id, intent.reason, intent.outcome === 'deferred');
  }

  /** False once `claimBy` has passed. */
  #isWanted(id: string): boolean {
    const context = this.actors.snapshot(id)?.context;
    const { claimBy } = (context && recordIn(context)) ?? {};
    return claimBy === undefined || this.#deps.runtime.clock.now() < claimBy;
  }

  #leaseOf(id: string): Lease {
    return this.#deps.runtime.leaseOf(shardOf(this.actors.snapshot(id)?.context.poolUid ?? ''));
  }

  /** Keep the order: each step may read what the steps before it have updated. */
  #changed(id: string, change: Moved): void {
    const { coordination, events, shared, runtime, listener } = this.#deps;
    const { retirements, waiters } = shared;
    const { before, after, event } = change;
    const { poolUid, working } = after.context;
    const isSent = before !== undefined;
    if (isSent)
      publishActivity(coordination, {
        event: event as SandboxEvent,
        before: before.context,
        after: after.context,
      });
    const places = this.#place(id, after);
    if (after.status === 'done') {
      listener.ended(id);
      if (working > 0) coordination.work(id, false);
    }
    // First, because the report to the pool below may end the sandbox at once.
    retirements.moved(poolUid, id, tagsOf(after));
    const report = this.#tellPool(change, places);
    // The record appeared while this replica leads. Neither this replica nor a claim's launch wrote
    // it.
    const { unlaunched, record } = after.context;
    const isLeft = unlaunched && record?.claimBy === undefined;
    if (isLeft && after.hasTag('awaited') && this.#leads(poolUid))
      runtime.outbox.put({
        name: 'lead',
        of: `s${id}`,
        lease: undefined,
        act: () => {
          this.actors.send(id, { type: 'LEADING', now: runtime.clock.now() });
        },
      });
    waiters.changed(id);
    this.#tellOthers(after, places, report);
    if (isSent)
      events?.moved(
        { state: stateOf(before.value), context: before.context },
        after,
        event as SandboxEvent,
      );
  }

  #place(id: string, { value, status, context }: Snapshot): Places {
    const { index } = this.#deps.shared;
    const record = recordIn(context);
    const state = stateOf(value);
    const now =
      record && status !== 'done'
        ? placementOf(record, statusOf(state, context), context)
        : undefined;
    return { now, before: now ? index.place(now) : index.remove(id) };
  }

  /**
   * Reports the start before the new count: otherwise the breaker would trip one launch too late.
   */
  #tellPool({ before, after, event }: Moved, places: Places): PoolEvent | undefined {
    const { pools } = this.#deps.parts();
    const { poolUid } = after.context;
    const report = this.#report;
    this.#report = undefined;
    if (report) this.#tellOfStart(poolUid, report, event.type);
    const revision = (places.now ?? places.before)?.updateRevision;
    const { from, to } = countedIn(places);
    const isOrdered = !before && event.type === 'ORDERED' && places.now?.isApart !== true;
    if (revision !== undefined && (from !== to || isOrdered))
      pools.moved({ poolUid, revision, from, to }, isOrdered);
    return report;
  }

  /** Most claims cause a start that the pool already knows. */
  #tellOfStart(poolUid: string, report: PoolEvent, event: string): void {
    const { parts, runtime } = this.#deps;
    const { pools } = parts();
    if (report.type === 'INSTANCE_STARTED' && pools.knowsToStart(poolUid, report.revision)) return;
    if (this.#leads(poolUid)) runtime.measures.start(report, event);
    pools.send(poolUid, report);
  }

  #tellOthers({ context }: Snapshot, places: Places, report: PoolEvent | undefined): void {
    const { participant, shared, runtime, parts } = this.#deps;
    const { index } = shared;
    const { poolUid } = context;
    const record = recordIn(context);
    const { from, to } = countedIn(places);
    if (from === 'starting' && to === 'idle' && record && this.#leads(poolUid))
      runtime.measures.ready(runtime.clock.now() - record.createdAt);
    if (to === 'idle' && from !== 'idle') parts().idle.lines.turnedIdle(poolUid);
    const isStocked = record?.claimBy === undefined;
    if (to === 'running' && from !== 'running' && this.#started && isStocked)
      participant?.claimed?.(poolUid, index.idleIn(poolUid) === 0);
    if (report && report.type !== 'INSTANCE_STARTED') participant?.startFailed?.(poolUid);
  }

  #threw(id: string, last: Snapshot | undefined): void {
    const { shared, parts } = this.#deps;
    const { index, retirements, waiters } = shared;
    this.#report = undefined;
    const before = index.remove(id);
    retirements.moved(last?.context.poolUid ?? before?.poolUid ?? '', id, NO_TAGS);
    if (before)
      parts().pools.moved(
        {
          poolUid: before.poolUid,
          revision: before.updateRevision,
          from: countedAs(before),
          to: undefined,
        },
        false,
      );
    waiters.changed(id);
  }

  #leads(poolUid: string): boolean {
    return this.#deps.leads(shardOf(poolUid));
  }
}

interface Places {
  readonly now: Placement | undefined;
  readonly before: Placement | undefined;
}

const countedIn = ({ now, before }: Places) => ({
  from: before && countedAs(before),
  to: now && countedAs(now),
});

const NO_TAGS: ReadonlySet<SandboxTag> = new Set();

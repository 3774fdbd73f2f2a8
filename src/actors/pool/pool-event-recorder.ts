import type { Clock } from '../../contracts/clock.ts';
import { presentOf, unclaimedOf } from '../../machines/pool/arithmetic.ts';
import { isFilled } from '../../machines/pool/decisions.ts';
import type { PoolContext } from '../../machines/pool/events.ts';
import type { LifecycleEvent } from '../../model/event.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { shardOf } from '../../model/shards.ts';
import type { EventSink } from '../runtime/event-feed.ts';

export interface PoolEventRecorderDeps {
  readonly events: EventSink;
  readonly clock: Clock;
  readonly leads: (shard: number) => boolean;
}

/** Stores all except repeated pauses with the same cause. */
export class PoolEventRecorder {
  readonly #deps: PoolEventRecorderDeps;
  readonly #awaited = new Set<string>();

  constructor(deps: PoolEventRecorderDeps) {
    this.#deps = deps;
  }

  created(record: PoolRecord): void {
    if (record.replicas > 0) this.#awaited.add(record.uid);
    this.#note(record, { reason: 'Created' }, { key: 'Created', at: record.createdAt });
  }

  changed(before: PoolContext, after: PoolContext): void {
    this.#definition(before, after);
    this.#size(before.record, after.record);
    this.#breaker(before, after);
    const { record } = after;
    if (record.deleting !== before.record.deleting && record.deleting !== false)
      this.#note(
        record,
        { reason: 'Deleting', force: record.deleting === 'force' },
        { key: `Deleting/${record.deleting}` },
      );
    this.#filled(after);
  }

  removed(record: PoolRecord): void {
    this.#awaited.delete(record.uid);
    this.#note(record, { reason: 'Deleted' }, { key: 'Deleted' });
  }

  #definition(before: PoolContext, { record, rolling }: PoolContext): void {
    const { templateVersion, updateRevision, revision } = record;
    if (updateRevision !== before.record.updateRevision)
      this.#note(record, { reason: 'Changed', templateVersion }, { key: `Changed/${revision}` });
    else if (before.rolling && !rolling && record.deleting === false)
      this.#note(record, { reason: 'RolledOut' }, {});
  }

  /** A group records its own decisions. */
  #size({ replicas: from, decided }: PoolRecord, record: PoolRecord): void {
    const { replicas: to, uid, revision } = record;
    if (from === to || record.decided?.id !== decided?.id) return;
    if (to > from || to === 0) this.#awaited.add(uid);
    this.#note(record, { reason: 'Resized', from, to }, { key: `Resized/${revision}` });
  }

  #breaker({ breaker: before, record: { updateRevision } }: PoolContext, after: PoolContext): void {
    const { breaker, record } = after;
    if (record.updateRevision !== updateRevision) return;
    if (before.failures === 0 && breaker.failures > 0) {
      this.#awaited.add(record.uid);
      this.#note(record, { reason: 'StartFailed', why: breaker.reason }, {});
    }
    if (breaker.pausedUntil === before.pausedUntil) return;
    const key = `${before.pausedUntil}/${breaker.pausedUntil}`;
    const { reason: why, pausedUntil: until } = breaker;
    if (until === 0) return this.#note(record, { reason: 'Recovered' }, { key });
    this.#awaited.add(record.uid);
    const kept = before.pausedUntil === 0 || before.reason !== why;
    this.#note(record, { reason: 'BackOff', why, until }, { key, kept });
  }

  #filled(context: PoolContext): void {
    const { record, counts, ordered, policy, breaker } = context;
    if (!this.#awaited.has(record.uid) || record.deleting !== false || breaker.failures > 0) return;
    const isEmpty = record.replicas === 0 && unclaimedOf(counts) + ordered === 0;
    const isFull =
      record.replicas > 0 &&
      isFilled(context) &&
      counts.unavailable === 0 &&
      presentOf(counts, 0, policy.replicaSemantics) > 0;
    if (!isEmpty && !isFull) return;
    this.#awaited.delete(record.uid);
    if (isFull) this.#note(record, { reason: 'Filled', replicas: record.replicas }, {});
    else this.#note(record, { reason: 'Emptied' }, {});
  }

  /** `key` identifies the event within its pool, equal on every replica. */
  #note(
    { uid, owner, name: poolName }: PoolRecord,
    event: LifecycleEvent,
    {
      key,
      at = this.#deps.clock.now(),
      kept = true,
    }: { readonly key?: string; readonly at?: number; readonly kept?: boolean },
  ): void {
    const { events, leads } = this.#deps;
    const shard = shardOf(uid);
    events.note(
      { at, owner, poolName, ...event },
      {
        shard,
        ours: leads(shard),
        kept,
        key: key === undefined ? undefined : `${uid}/${key}`,
      },
    );
  }
}

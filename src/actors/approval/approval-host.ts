import { createActor, type SnapshotFrom } from 'xstate';
import type {
  ApprovalContext,
  ApprovalEvent,
  ApprovalInput,
  ApprovalIntent,
} from '../../machines/approval/events.ts';
import { approvalMachine } from '../../machines/approval/machine.ts';
import { isOpen, type ApprovalRecord } from '../../model/approvals/approval.ts';
import { SHARDS, shardOf } from '../../model/shards.ts';
import { ActorHost, type ActorKind, pathOf } from '../runtime/actor-host.ts';
import type { ActorRuntime } from '../runtime/actor-runtime.ts';
import type { ApprovalMirror } from './approval-mirror.ts';

export interface ApprovalHostDeps {
  readonly runtime: ActorRuntime;
  readonly approvals: ApprovalMirror;
  readonly grantMs: number;
  readonly kept: number;
  readonly expire: (id: string, permitted: () => boolean) => Promise<void>;
  readonly settle: (id: string, permitted: () => boolean) => Promise<void>;
}

type Snapshot = SnapshotFrom<typeof approvalMachine>;

const PREFIX = 'a';
const RETENTION_PREFIX = 'r';
const MOST_REMOVED_AT_ONCE = 50;
const REMOVE_AGAIN_MS = 1_000;

/** An ended approval only has a record. */
export class ApprovalHost {
  readonly actors: ActorHost<Snapshot, ApprovalEvent, ApprovalIntent, ApprovalInput>;
  readonly #deps: ApprovalHostDeps;

  constructor(deps: ApprovalHostDeps) {
    this.#deps = deps;
    this.actors = new ActorHost(deps.runtime, this.#kind());
    deps.runtime.onDue(RETENTION_PREFIX, () => {
      this.#removeOldest();
    });
  }

  start(): void {
    this.#deps.approvals.follow(({ kind, record }) => {
      if (kind === 'gone') this.actors.end(record.id);
      else this.#learn(record);
    });
  }

  whole(id: string): { readonly state: string; readonly context: ApprovalContext } | undefined {
    const snapshot = this.actors.snapshot(id);
    return snapshot && { state: pathOf(snapshot.value), context: snapshot.context };
  }

  #kind(): ActorKind<Snapshot, ApprovalEvent, ApprovalIntent, ApprovalInput> {
    return {
      name: 'approval',
      entity: 'approval',
      prefix: PREFIX,
      create: (input) => createActor(approvalMachine, { input }),
      pathOf: ({ value }) => pathOf(value),
      listed: (_key, { context }) => ({
        group: context.record.principal.namespace,
        born: context.record.createdAt,
      }),
      causeOf: (event) => (event.type === 'RECORD' ? event.record.status : ''),
      isOver: ({ status }) => status === 'done',
      deadlineOf: ({ context }) => context.deadline,
      due: (key, now) => this.actors.send(key, { type: 'DEADLINE', now }),
      leading: {
        shardOf,
        lead: (now) => ({ type: 'LEAD', now }),
        follow: { type: 'FOLLOW' },
      },
      intent: (id, { type }) => {
        const lease = this.#deps.runtime.leaseOf(shardOf(id));
        const act = type === 'expire' ? this.#deps.expire : this.#deps.settle;
        return { name: `approval ${type}`, lease, act: () => act(id, () => lease.held()) };
      },
      changed: () => undefined,
      remake: (id) => {
        const record = this.#deps.approvals.get(id);
        if (record) this.#learn(record);
      },
    };
  }

  #learn(record: ApprovalRecord): void {
    const { runtime, grantMs } = this.#deps;
    if (this.actors.has(record.id))
      this.actors.send(record.id, { type: 'RECORD', record, now: runtime.clock.now() });
    else if (!isOpen(record)) this.actors.rebuilds.forget(record.id);
    else if (!this.actors.rebuilds.has(record.id)) this.actors.make(record.id, { record, grantMs });
    if (this.#surplus() > 0) this.#removeSoon();
  }

  #surplus(): number {
    return this.#deps.approvals.size - this.actors.size - this.#deps.kept;
  }

  #removeSoon(): void {
    const { runtime } = this.#deps;
    runtime.arm(RETENTION_PREFIX, '', runtime.clock.now() + REMOVE_AGAIN_MS);
  }

  #removeOldest(): void {
    const { approvals, runtime } = this.#deps;
    const surplus = Math.min(this.#surplus(), MOST_REMOVED_AT_ONCE);
    if (surplus <= 0 || !ALL_SHARDS.some((shard) => this.actors.leads(shard))) return;
    const oldest = (['denied', 'expired', 'consumed'] as const)
      .flatMap((status) => approvals.oldest(status, surplus))
      .filter((record) => !isOpen(record))
      .toSorted((a, b) => a.createdAt - b.createdAt)
      .slice(0, surplus);
    for (const { id } of oldest) {
      const shard = shardOf(id);
      if (!this.actors.leads(shard)) continue;
      runtime.outbox.put({
        name: 'approval remove',
        lease: runtime.leaseOf(shard),
        act: () => approvals.remove(id, (record) => !isOpen(record)),
      });
    }
    runtime.outbox.drain();
    this.#removeSoon();
  }
}

const ALL_SHARDS: readonly number[] = Array.from({ length: SHARDS }, (_, shard) => shard);

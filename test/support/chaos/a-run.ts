import { SHARDS } from '../../../src/model/shards.ts';
import type {
  ApprovalState,
  Asked,
  Answer,
  Call,
  ClaimState,
  Disturbance,
  EnvState,
  Evidence,
  Look,
  Moment,
  PodState,
  PoolState,
  RecordState,
  Rest,
  Rewind,
  Sighting,
  StoreChange,
} from './history.ts';
import { undoing } from './undoing.ts';

const OWNER = 'team/team/ann';
const LOOK_EVERY_MS = 250;
const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard);

/**
 * An invented run. `at` moves its clock; each change gets a revision, seen right before and after
 * it.
 */
export class MadeUpRun {
  readonly calls: Call[] = [];
  readonly changes: StoreChange[] = [];
  readonly sightings: Sighting[] = [];
  readonly disturbances: Disturbance[] = [];
  readonly rests: Rest[] = [];
  readonly rewinds: Rewind[] = [];
  readonly #records = new Map<string, RecordState>();
  readonly #pods = new Map<string, PodState>();
  readonly #envs = new Map<string, EnvState>();
  readonly #pools = new Map<string, PoolState>();
  #now: Moment = 0;
  #revision = 0;
  readonly #approvals = new Map<string, ApprovalState>();
  gated: Evidence['gated'];
  quota = 100;
  replicaQuota = 1_000;

  get now(): Moment {
    return this.#now;
  }

  /** In ms; never back. */
  at(moment: Moment): this {
    this.#now = Math.max(moment, this.#now + 0.01);
    return this;
  }

  pool(name: string, change: Partial<PoolState> = {}): this {
    const state: PoolState = {
      poolUid: `uid-of-${name}`,
      owner: OWNER,
      replicas: 10,
      deleting: false,
      ...this.#pools.get(name),
      ...change,
    };
    this.#pools.set(name, state);
    return this.#change({ kind: 'pool', namespace: 'team', name, state });
  }

  /** By default its claim's owner. An approved one is unused. */
  approval(name: string, change: Partial<ApprovalState>): this {
    const { use, ...before } = { ...this.#approvals.get(name), ...change };
    const state: ApprovalState = {
      owner: OWNER,
      keyId: 'key',
      operation: 'claimSandbox',
      path: '/sandboxes',
      status: 'pending',
      expiresAt: 10_000_000,
      ...before,
      ...(use && change.status !== 'approved' ? { use } : {}),
    };
    this.#approvals.set(name, state);
    return this.#change({ kind: 'approval', namespace: 'team', name, state });
  }

  env(name: string, change: Partial<EnvState> = {}): this {
    const state: EnvState = { deleting: false, ...this.#envs.get(name), ...change };
    this.#envs.set(name, state);
    return this.#change({ kind: 'env', namespace: 'team', name, state });
  }

  envGone(name: string): this {
    return this.#change({ kind: 'env', namespace: 'team', name });
  }

  poolGone(name: string): this {
    return this.#change({ kind: 'pool', namespace: 'team', name });
  }

  node(name: string, takesWork: boolean): this {
    return this.#change({ kind: 'node', name, state: { takesWork } });
  }

  born(id: string, pool = 'p'): this {
    return this.record(id, {
      uid: `record-${id}`,
      namespace: 'team',
      poolUid: `uid-of-${pool}`,
      terminating: false,
    });
  }

  ready(id: string, node = 'node-0'): this {
    return this.pod(id, {
      ownerUid: `record-${id}`,
      uid: `pod-${id}`,
      node,
      vitals: 'ready',
      terminating: false,
    });
  }

  idle(id: string, pool = 'p'): this {
    return this.born(id, pool).ready(id);
  }

  claimed(id: string, by: Partial<ClaimState> = {}): this {
    return this.record(id, {
      podUid: `pod-${id}`,
      claim: { owner: OWNER, claimedAt: 'then', ...by },
    });
  }

  pod(id: string, change: Partial<PodState>): this {
    const state = { ...this.#pods.get(id), ...change } as PodState;
    this.#pods.set(id, state);
    return this.#change({ kind: 'pod', name: id, state });
  }

  podGone(id: string): this {
    return this.#change({ kind: 'pod', name: id });
  }

  record(id: string, change: Partial<RecordState>): this {
    const state = { ...this.#records.get(id), ...change } as RecordState;
    this.#records.set(id, state);
    return this.#change({ kind: 'sandbox', name: id, state });
  }

  recordGone(id: string): this {
    return this.#change({ kind: 'sandbox', name: id });
  }

  call(asked: Asked, answer?: Answer, more: Partial<Call> = {}): this {
    this.calls.push({
      user: OWNER,
      replica: 0,
      asked,
      invoked: this.#now,
      completed: this.#now + 10,
      ...(answer ? { answer } : {}),
      ...more,
    });
    return this;
  }

  disturbed(one: Partial<Disturbance>): this {
    const from = one.from ?? this.#now;
    this.disturbances.push({
      kind: 'a fault',
      victim: 'something',
      from,
      to: from,
      led: from,
      removed: [],
      ...one,
    });
    return this;
  }

  /** By default undisturbed: a look each 250 ms, all shards led by replica 0. */
  rest(forMs: number, said: Partial<Pick<Look, 'led' | 'usage'>> = {}): this {
    const [from, looks]: [Moment, Look[]] = [this.#now, []];
    for (let at = from; at <= from + forMs; at += LOOK_EVERY_MS)
      looks.push({ asked: at, answered: at + 1, led: [ALL_SHARDS], usage: {}, ...said });
    this.rests.push({ from, until: from + forMs, looks });
    this.sightings.push({ asked: this.#now, answered: this.#now, revision: this.#revision });
    this.at(from + forMs);
    this.sightings.push({ asked: this.#now, answered: this.#now, revision: this.#revision });
    return this;
  }

  get revision(): number {
    return this.#revision;
  }

  setBack(kept: number): this {
    const rewind = { kept, lost: this.#revision };
    this.rewinds.push(rewind);
    this.sightings.push({ asked: this.#now, answered: this.#now, revision: this.#revision });
    this.changes.push(...undoing(this.changes, rewind));
    this.#revision += 1;
    this.#now += 0.01;
    this.sightings.push({ asked: this.#now, answered: this.#now, revision: this.#revision });
    return this;
  }

  evidence(): Evidence {
    const { calls, changes, sightings, disturbances, rests, rewinds, quota, replicaQuota } = this;
    return {
      gated: this.gated,
      rests,
      rewinds,
      replicaQuota,
      epoch: 0,
      calls,
      changes,
      sightings: [
        ...sightings,
        { asked: this.#now + 1e6, answered: this.#now + 1e6, revision: this.#revision },
      ],
      disturbances,
      quota,
    };
  }

  #change(change: DistributiveOmit<StoreChange, 'revision'>): this {
    const [before, after] = [this.#now - 0.001, this.#now + 0.001];
    this.sightings.push({ asked: before, answered: before, revision: this.#revision });
    this.#revision += 1;
    this.changes.push({ ...change, revision: this.#revision });
    this.sightings.push({ asked: after, answered: after, revision: this.#revision });
    this.#now += 0.01;
    return this;
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

import { createActor, type SnapshotFrom } from 'xstate';
import type { RecordChange } from '../../contracts/record-store.ts';
import type {
  MemberContext,
  MemberEvent,
  MemberFact,
  MemberInput,
  MemberIntent,
} from '../../machines/env/member-events.ts';
import { memberStateOf } from '../../machines/env/member-decisions.ts';
import { envMemberMachine } from '../../machines/env/member-machine.ts';
import type { EnvRecord, MemberState } from '../../model/envs/env.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { isNewer } from '../../model/mirror/revision-order.ts';
import { shardOf } from '../../model/shards.ts';
import { ActorHost, type ActorKind, type Change, pathOf } from '../runtime/actor-host.ts';
import { keyOf, ledWithEnv, partsOf } from './group-host.ts';
import type { ActorRuntime, OutboxEntry } from '../runtime/actor-runtime.ts';
import type { EnvMirror } from '../runtime/record-mirror.ts';
import { MemberFailure, type AwayMembers, type MemberEffects } from './member-effects.ts';

export interface MemberHostDeps {
  readonly away?: AwayMembers;
  readonly runtime: ActorRuntime;
  readonly envs: EnvMirror;
  readonly effects: MemberEffects;
  readonly clusterId: string;
  readonly changed: (envUid: string) => void;
}

export interface MemberActorView {
  readonly state: string;
  readonly context: MemberContext;
}

export interface MemberSnapshot {
  readonly name: string;
  readonly state: MemberState;
  readonly fact: MemberFact;
  readonly trouble: MemberContext['trouble'];
}

type Snapshot = SnapshotFrom<typeof envMemberMachine>;

const REMOVE_AGAIN_MS = 5_000;
const MOST_GONE = 1_000;
const ENV_PREFIX = 'e';

/** Hosts one actor for each member of each env, and for each pool whose env does not list it. */
export class MemberHost {
  readonly actors: ActorHost<Snapshot, MemberEvent, MemberIntent, MemberInput>;
  readonly #deps: MemberHostDeps;
  readonly #names = new Map<string, Set<string>>();
  readonly #pools = new Map<string, Map<string, PoolRecord>>();
  /** Remembered against late answers. */
  readonly #gone = new RecentSet(MOST_GONE);
  readonly #saturated = new Map<string, number>();

  constructor(deps: MemberHostDeps) {
    this.#deps = deps;
    this.actors = new ActorHost(deps.runtime, this.#kind());
    deps.runtime.onDue(ENV_PREFIX, (uid) => {
      this.#endEnv(uid);
    });
  }

  /** Envs and pools must be loaded; changes of pools come by `pool`. */
  start(): void {
    this.#deps.envs.follow(({ kind, record }) => {
      this.lookAgain(record.uid, record);
      if (kind === 'put') this.#endEnv(record.uid);
      this.#deps.changed(record.uid);
    });
  }

  lookAgain(envUid: string, env = this.#deps.envs.get(envUid)): void {
    for (const name of this.#namesOf(envUid, env)) this.#look(envUid, name);
  }

  pool({ kind, record }: RecordChange<PoolRecord>): void {
    if (!record.env) return;
    const { uid } = record.env;
    if (kind === 'gone') this.#gone.add(record.uid);
    else this.#gone.delete(record.uid); // a restored store may contain it again
    const pools = this.#pools.get(uid) ?? new Map<string, PoolRecord>();
    const known = pools.get(record.name);
    if (kind === 'put') pools.set(record.name, record);
    else if (known?.uid === record.uid) pools.delete(record.name);
    if (pools.size > 0) this.#pools.set(uid, pools);
    else this.#pools.delete(uid);
    this.#look(uid, record.name);
    this.#endEnv(uid);
    this.#deps.changed(uid);
  }

  /** `until`: ms since the epoch; 0 if it can grow. */
  saturate(envUid: string, member: string, until: number): void {
    if (until > 0) this.#saturated.set(keyOf(envUid, member), until);
    else this.#saturated.delete(keyOf(envUid, member));
    this.#look(envUid, member);
  }

  members(envUid: string): readonly MemberSnapshot[] {
    return this.#namesOf(envUid, this.#deps.envs.get(envUid)).flatMap(
      (name) => this.member(envUid, name) ?? [],
    );
  }

  member(envUid: string, name: string): MemberSnapshot | undefined {
    const snapshot = this.actors.snapshot(keyOf(envUid, name));
    if (!snapshot) return undefined;
    const { fact, trouble } = snapshot.context;
    return { name, state: memberStateOf(snapshot.context), fact, trouble };
  }

  whole(key: string): MemberActorView | undefined {
    const snapshot = this.actors.snapshot(key);
    return snapshot && { state: pathOf(snapshot.value), context: snapshot.context };
  }

  pools(envUid: string): Iterable<PoolRecord> {
    return this.#pools.get(envUid)?.values() ?? [];
  }

  isBroken(envUid: string, name: string): boolean {
    return this.actors.rebuilds.isBroken(keyOf(envUid, name));
  }

  leads(envUid: string): boolean {
    return this.actors.leads(shardOf(envUid));
  }

  lead(shard: number): void {
    this.actors.lead(shard);
    for (const uid of this.#deps.envs.index.list(undefined, 0, Number.POSITIVE_INFINITY).ids)
      if (shardOf(uid) === shard) this.#endEnv(uid);
  }

  #kind(): ActorKind<Snapshot, MemberEvent, MemberIntent, MemberInput> {
    return {
      name: 'member',
      entity: 'env-member',
      prefix: 'm',
      create: (input) => createActor(envMemberMachine, { input }),
      pathOf: ({ value }) => pathOf(value),
      countedAs: wordOf,
      listed: (key, { context }) => ({
        group: partsOf(key)[0],
        born: context.fact.member?.createdAt ?? 0,
      }),
      causeOf: (event) => (event.type === 'NOT_CARRIED_OUT' ? event.reason : ''),
      isOver: ({ status }) => status === 'done',
      deadlineOf: ({ context }) => context.deadline,
      due: (key, now) => this.actors.send(key, { type: 'DEADLINE', now }),
      leading: ledWithEnv,
      intent: (key, intent) => this.#entry(key, intent),
      changed: (key, change) => {
        this.#changed(key, change);
      },
      threw: (key) => {
        this.#forget(key);
      },
      remake: (key) => {
        this.#look(...partsOf(key));
      },
    };
  }

  #now(): number {
    return this.#deps.runtime.clock.now();
  }

  #namesOf(envUid: string, env: EnvRecord | undefined): readonly string[] {
    const broken = this.actors.rebuilds.broken.flatMap((key) => {
      const [uid, name] = partsOf(key);
      return uid === envUid ? [name] : [];
    });
    return [
      ...new Set([
        ...(env?.members.map(({ name }) => name) ?? []),
        ...(this.#pools.get(envUid)?.keys() ?? []),
        ...(this.#names.get(envUid) ?? []),
        ...broken,
      ]),
    ];
  }

  #look(envUid: string, name: string): void {
    const key = keyOf(envUid, name);
    const fact = this.#factOf(envUid, name);
    const now = this.#now();
    if (this.actors.has(key)) this.actors.send(key, { type: 'FACT', fact, now });
    else if (!fact.pool && !(fact.env && fact.member)) this.actors.rebuilds.forget(key);
    else if (!this.actors.rebuilds.has(key))
      this.actors.make(key, { fact, localCluster: this.#deps.clusterId, now });
  }

  #factOf(envUid: string, name: string): MemberFact {
    const env = this.#deps.envs.get(envUid);
    const member = env?.members.find((each) => each.name === name);
    const away = this.#deps.away?.factOf(env, member);
    return {
      env,
      member,
      pool: this.#pools.get(envUid)?.get(name),
      saturatedUntil: this.#saturated.get(keyOf(envUid, name)) ?? 0,
      away,
    };
  }

  #changed(key: string, { before, after, event }: Change<Snapshot, MemberEvent>): void {
    const [envUid, name] = partsOf(key);
    const { status, context } = after;
    if (status === 'active')
      this.#names.set(envUid, (this.#names.get(envUid) ?? new Set()).add(name));
    else this.#forget(key);
    if (!before || wordOf(before) === wordOf(after)) return;
    this.#deps.runtime.log.info(
      {
        entity: 'env-member',
        env: context.fact.env?.name,
        name,
        event: event.type,
        from: wordOf(before),
        to: wordOf(after),
        ...(context.trouble ? { why: context.trouble.why } : {}),
      },
      'member-moved',
    );
    this.#deps.changed(envUid);
  }

  #forget(key: string): void {
    const [envUid, name] = partsOf(key);
    const names = this.#names.get(envUid);
    names?.delete(name);
    if (names?.size === 0) this.#names.delete(envUid);
    this.#saturated.delete(key);
  }

  #answered(record: PoolRecord): void {
    const known = record.env && this.#pools.get(record.env.uid)?.get(record.name);
    const isOlder = known?.uid === record.uid && isNewer(known.revision, record.revision);
    if (!this.#gone.has(record.uid) && !isOlder) this.pool({ kind: 'put', record });
  }

  #entry(key: string, intent: MemberIntent): Omit<OutboxEntry, 'of'> {
    const [envUid, name] = partsOf(key);
    return {
      name: `member ${intent.type}`,
      lease: this.#deps.runtime.leaseOf(shardOf(envUid)),
      act: async () => {
        this.actors.send(key, await this.#carryOut(envUid, name, intent));
      },
    };
  }

  async #carryOut(envUid: string, name: string, intent: MemberIntent): Promise<MemberEvent> {
    const { effects, runtime, away, clusterId } = this.#deps;
    const { env, member, pool } = this.#factOf(envUid, name);
    try {
      const isAway = !pool && member !== undefined && member.clusterId !== clusterId;
      const record = isAway
        ? await (env && away?.carryOut(env, name, intent))
        : intent.type === 'end-pool'
          ? await (pool && effects['end-pool'](pool, intent.force))
          : await (env && effects[intent.type](env, name));
      if (record) this.#answered(record);
      return { type: 'CARRIED_OUT', now: this.#now() };
    } catch (error) {
      const reason = error instanceof MemberFailure ? error.reason : 'Unavailable';
      runtime.log.warn(
        { entity: 'env-member', env: env?.name, name, intent: intent.type, error },
        'member-intent-failed',
      );
      const why =
        error instanceof MemberFailure ? error.message : 'it could not be written; trying again';
      return { type: 'NOT_CARRIED_OUT', reason, why, now: this.#now() };
    }
  }

  #endEnv(uid: string): void {
    const { envs, effects, runtime } = this.#deps;
    const env = envs.get(uid);
    if (
      !env ||
      env.deleting === false ||
      env.members.length > 0 ||
      this.#pools.has(uid) ||
      !this.leads(uid)
    )
      return;
    runtime.arm(ENV_PREFIX, uid, this.#now() + REMOVE_AGAIN_MS);
    runtime.outbox.put({
      name: 'env remove',
      lease: runtime.leaseOf(shardOf(uid)),
      act: () => effects['remove-env'](env),
    });
    runtime.outbox.drain();
  }
}

const wordOf = ({ status, context }: Snapshot): string =>
  status === 'done' ? 'gone' : memberStateOf(context).toLowerCase();

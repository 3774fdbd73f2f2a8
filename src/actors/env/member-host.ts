import { createActor, type Actor } from 'xstate';
import type { Clock } from '../../contracts/clock.ts';
import type { Leases } from '../../contracts/coordination.ts';
import type { Log } from '../../contracts/log.ts';
import type { RecordChange } from '../../contracts/record-store.ts';
import type {
  MemberContext,
  MemberEvent,
  MemberFact,
  MemberIntent,
  MemberTrouble,
} from '../../machines/env/member-events.ts';
import { envMemberMachine } from '../../machines/env/member-machine.ts';
import type { EnvRecord, MemberState } from '../../model/envs/env.ts';
import type { PendingIntent } from '../../model/inspection.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { isNewer } from '../../model/revision-order.ts';
import { shardOf } from '../../model/shards.ts';
import type { ActorMeasures } from '../runtime/actor-measures.ts';
import { TransitionHistory } from '../runtime/transition-history.ts';
import { Deadlines } from '../runtime/deadlines.ts';
import type { EnvMirror } from './env-mirror.ts';
import { Outbox } from '../runtime/outbox.ts';
import { LOST_LEASE } from '../pool/pool-host.ts';
import { Rebuilds } from '../runtime/rebuilds.ts';

/** Could not be done, and for what reason; the message is for people. */
export class MemberFailure extends Error {
  override readonly name = 'MemberFailure';
  readonly reason: MemberTrouble;

  constructor(reason: MemberTrouble, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * What members ask for. Resolves once it is durable, or is not to be done any more, with the pool
 * as it stands then. Rejects with MemberFailure for what a person should hear of.
 */
export interface MemberEffects {
  readonly 'make-pool': (env: EnvRecord, member: string) => Promise<PoolRecord | undefined>;
  readonly 'settle-pool': (env: EnvRecord, member: string) => Promise<PoolRecord | undefined>;
  readonly forget: (env: EnvRecord, member: string) => Promise<undefined>;
  readonly 'end-pool': (pool: PoolRecord, force: boolean) => Promise<PoolRecord | undefined>;
  readonly 'remove-env': (env: EnvRecord) => Promise<void>;
}

export interface MemberHostDeps {
  readonly envs: EnvMirror;
  readonly effects: MemberEffects;
  readonly leases: Pick<Leases, 'lease'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly measures?: ActorMeasures;
  readonly clusterId: string;
  /** Told of an env of which a member, or its pool, is not what it was. */
  readonly changed: (envUid: string) => void;
}

/** All of it, for whoever looks inside. */
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

const REMOVE_AGAIN_MS = 5_000;
const MOST_GONE = 1_000;

/**
 * Hosts one actor for each member of each env, also for a pool that names an env which does not
 * list it.
 */
export class MemberHost {
  readonly transitions: TransitionHistory<MemberEvent | { readonly type: 'FOUND' | 'THREW' }>;
  readonly #deps: MemberHostDeps;
  /** By env, by name. */
  readonly #actors = new Map<string, Map<string, Actor<typeof envMemberMachine>>>();
  readonly #pools = new Map<string, Map<string, PoolRecord>>();
  /** Pools that are no more, as long as a late word of them may come. */
  readonly #gone = new RecentSet(MOST_GONE);
  readonly #saturated = new Map<string, number>();
  readonly #outbox: Outbox;
  readonly #deadlines: Deadlines;
  readonly #led = new Set<number>();
  readonly #rebuilds: Rebuilds;

  constructor(deps: MemberHostDeps) {
    this.#deps = deps;
    this.#outbox = new Outbox(deps.log);
    this.transitions = new TransitionHistory({
      kind: 'member',
      clock: deps.clock,
      log: deps.log,
      causeOf: (event) => (event.type === 'NOT_CARRIED_OUT' ? event.reason : ''),
    });
    this.#rebuilds = new Rebuilds({
      ...deps,
      entity: 'env-member',
      outbox: this.#outbox,
      measures: deps.measures,
      transitions: this.transitions,
    });
    this.#deadlines = new Deadlines(deps.clock, (key, now) => {
      const at = key.indexOf('/');
      if (at < 0) this.#endEnv(key);
      else this.#send(key.slice(0, at), key.slice(at + 1), { type: 'DEADLINE', now });
    });
  }

  /**
   * Envs and pools are known; from here on every change comes by `pool`, and by the mirror of envs.
   */
  start(): void {
    this.#deps.envs.follow(({ kind, record }) => {
      for (const name of this.#namesOf(record.uid, record)) this.#look(record.uid, name);
      if (kind === 'put') this.#endEnv(record.uid);
      this.#deps.changed(record.uid);
    });
  }

  /** A pool was made, changed or removed. */
  pool({ kind, record }: RecordChange<PoolRecord>): void {
    if (!record.env) return;
    const { uid } = record.env;
    if (kind === 'gone') this.#gone.add(record.uid);
    else this.#gone.delete(record.uid); // a store that was restored has it again
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

  /** The member can't grow until then (ms since the epoch); 0: it can. */
  saturate(envUid: string, member: string, until: number): void {
    if (until > 0) this.#saturated.set(`${envUid}/${member}`, until);
    else this.#saturated.delete(`${envUid}/${member}`);
    this.#look(envUid, member);
  }

  /** In the order of the env; also pools that it does not list any more. */
  members(envUid: string): readonly MemberSnapshot[] {
    return this.#namesOf(envUid, this.#deps.envs.get(envUid)).flatMap(
      (name) => this.member(envUid, name) ?? [],
    );
  }

  member(envUid: string, name: string): MemberSnapshot | undefined {
    const snapshot = this.#actors.get(envUid)?.get(name)?.getSnapshot();
    if (!snapshot) return undefined;
    const { fact, trouble } = snapshot.context;
    return { name, state: STATES[String(snapshot.value)] ?? 'Pending', fact, trouble };
  }

  /** All of a member's actor, for whoever looks inside. */
  whole(envUid: string, name: string): MemberActorView | undefined {
    const snapshot = this.#actors.get(envUid)?.get(name)?.getSnapshot();
    return snapshot && { state: String(snapshot.value), context: snapshot.context };
  }

  pendingOf(envUid: string, name: string): readonly PendingIntent[] {
    return this.#outbox.pendingOf(`${envUid}/${name}`);
  }

  /** Makes the member's actor anew from what is known of env and pool, also one that is broken. */
  rebuild(envUid: string, name: string): void {
    this.#actors.get(envUid)?.get(name)?.stop();
    this.#actors.get(envUid)?.delete(name);
    this.#rebuilds.forget(`${envUid}/${name}`);
    this.#look(envUid, name);
  }

  /** All that name the env. */
  pools(envUid: string): Iterable<PoolRecord> {
    return this.#pools.get(envUid)?.values() ?? [];
  }

  leads(envUid: string): boolean {
    return this.#led.has(shardOf(envUid));
  }

  lead(shard: number): void {
    this.#led.add(shard);
    this.#tellAll(shard, { type: 'LEAD', now: this.#deps.clock.now() });
    for (const uid of this.#deps.envs.index.list(undefined, 0, Number.POSITIVE_INFINITY).ids)
      if (shardOf(uid) === shard) this.#endEnv(uid);
  }

  follow(shard: number): void {
    this.#led.delete(shard);
    this.#tellAll(shard, { type: 'FOLLOW' });
  }

  get outbox(): Pick<Outbox, 'underWay' | 'oldestMs' | 'dropped' | 'report'> {
    return this.#outbox;
  }

  /** Resolves once what was under way at the call is done. */
  drained(): Promise<void> {
    return this.#outbox.drained();
  }

  /** Those whose actors threw again and again, as `{env uid}/{name}`. */
  get broken(): readonly string[] {
    return this.#rebuilds.broken;
  }
  isBroken(envUid: string, name: string): boolean {
    return this.#rebuilds.isBroken(`${envUid}/${name}`);
  }

  stop(): void {
    this.#deadlines.stop();
    this.#rebuilds.stop();
  }

  #tellAll(shard: number, event: MemberEvent): void {
    for (const [uid, actors] of this.#actors)
      if (shardOf(uid) === shard)
        for (const name of [...actors.keys()]) this.#send(uid, name, event);
  }

  #namesOf(envUid: string, env: EnvRecord | undefined): readonly string[] {
    const broken = this.broken.flatMap((key) =>
      key.startsWith(`${envUid}/`) ? [key.slice(envUid.length + 1)] : [],
    );
    const named = env?.members.map(({ name }) => name) ?? [];
    return [
      ...new Set([
        ...named,
        ...(this.#pools.get(envUid)?.keys() ?? []),
        ...(this.#actors.get(envUid)?.keys() ?? []),
        ...broken,
      ]),
    ];
  }

  #look(envUid: string, name: string): void {
    const fact = this.#factOf(envUid, name);
    if (this.#actors.get(envUid)?.has(name))
      this.#send(envUid, name, { type: 'FACT', fact, now: this.#deps.clock.now() });
    else if (!fact.pool && !(fact.env && fact.member)) this.#rebuilds.forget(`${envUid}/${name}`);
    else if (!this.#rebuilds.has(`${envUid}/${name}`)) this.#host(envUid, name, fact);
  }

  #factOf(envUid: string, name: string): MemberFact {
    const env = this.#deps.envs.get(envUid);
    return {
      env,
      member: env?.members.find((member) => member.name === name),
      pool: this.#pools.get(envUid)?.get(name),
      saturatedUntil: this.#saturated.get(`${envUid}/${name}`) ?? 0,
    };
  }

  #host(envUid: string, name: string, fact: MemberFact): void {
    const { clock, clusterId, leases } = this.#deps;
    const actor = createActor(envMemberMachine, {
      input: { fact, localCluster: clusterId, now: clock.now() },
    });
    actor.on('*', (intent) =>
      this.#outbox.put({
        name: `member ${intent.type}`,
        of: `${envUid}/${name}`,
        lease: leases.lease(shardOf(envUid)) ?? LOST_LEASE,
        act: () => this.#carryOut(envUid, name, intent),
      }),
    );
    // looked at after each send; unobserved it would end the process
    actor.subscribe({ error: () => undefined });
    const actors = this.#actors.get(envUid) ?? new Map<string, Actor<typeof envMemberMachine>>();
    actors.set(name, actor);
    this.#actors.set(envUid, actors);
    actor.start();
    this.transitions.moved(`${envUid}/${name}`, String(actor.getSnapshot().value), {
      event: { type: 'FOUND' },
      group: envUid,
      born: fact.member?.createdAt ?? 0,
    });
    if (this.leads(envUid)) this.#send(envUid, name, { type: 'LEAD', now: clock.now() });
  }

  #send(envUid: string, name: string, event: MemberEvent): void {
    const actors = this.#actors.get(envUid);
    const actor = actors?.get(name);
    if (!actors || !actor) return;
    const before = String(actor.getSnapshot().value);
    actor.send(event);
    const { status, value, context, error } = actor.getSnapshot();
    const key = `${envUid}/${name}`;
    this.transitions.moved(key, String(value), { event, group: envUid, born: 0 });
    this.#deadlines.arm(key, status === 'active' ? context.deadline : undefined);
    this.#deps.measures?.moved('member', before, String(value));
    if (String(value) !== before) {
      this.#deps.log.info(
        {
          entity: 'env-member',
          env: context.fact.env?.name,
          name,
          event: event.type,
          from: before,
          to: String(value),
          ...(context.trouble ? { why: context.trouble.why } : {}),
        },
        'member moved',
      );
      this.#deps.changed(envUid);
    }
    if (status !== 'active') {
      actors.delete(name);
      if (actors.size === 0) this.#actors.delete(envUid);
      this.#saturated.delete(key);
      this.transitions.ended(key);
      if (status === 'error')
        this.#rebuilds.threw(key, error, {
          group: envUid,
          make: () => {
            this.#look(envUid, name);
          },
        });
      else this.#rebuilds.forget(key);
    }
    this.#outbox.drain();
  }

  /** What an effect answered may be older than what the store told meanwhile. */
  #answered(record: PoolRecord): void {
    const known = record.env && this.#pools.get(record.env.uid)?.get(record.name);
    const isOlder = known?.uid === record.uid && isNewer(known.revision, record.revision);
    if (!this.#gone.has(record.uid) && !isOlder) this.pool({ kind: 'put', record });
  }

  async #carryOut(envUid: string, name: string, intent: MemberIntent): Promise<void> {
    const { clock, effects, log } = this.#deps;
    const { env, pool } = this.#factOf(envUid, name);
    try {
      const record =
        intent.type === 'end-pool'
          ? await (pool && effects['end-pool'](pool, intent.force))
          : await (env && effects[intent.type](env, name));
      if (record) this.#answered(record);
      this.#send(envUid, name, { type: 'CARRIED_OUT', now: clock.now() });
    } catch (error) {
      const reason = error instanceof MemberFailure ? error.reason : 'Unavailable';
      log.warn(
        { entity: 'env-member', env: env?.name, name, intent: intent.type, error },
        'a member could not be served',
      );
      const why =
        error instanceof MemberFailure
          ? error.message
          : 'it could not be written; it is tried again';
      this.#send(envUid, name, { type: 'NOT_CARRIED_OUT', reason, why, now: clock.now() });
    }
  }

  /** An env that is to go goes when nothing is left of it. */
  #endEnv(uid: string): void {
    const env = this.#deps.envs.get(uid);
    if (
      !env ||
      env.deleting === false ||
      env.members.length > 0 ||
      this.#pools.has(uid) ||
      !this.leads(uid)
    )
      return;
    this.#deadlines.arm(uid, this.#deps.clock.now() + REMOVE_AGAIN_MS);
    this.#outbox.put({
      name: 'env remove',
      lease: this.#deps.leases.lease(shardOf(uid)) ?? LOST_LEASE,
      act: () => this.#deps.effects['remove-env'](env),
    });
    this.#outbox.drain();
  }
}

const STATES: Readonly<Record<string, MemberState>> = {
  pending: 'Pending',
  active: 'Active',
  saturated: 'Saturated',
  draining: 'Draining',
  unreachable: 'Unreachable',
  error: 'Error',
};

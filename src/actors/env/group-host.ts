import { createActor, type Actor } from 'xstate';
import type { Clock } from '../../contracts/clock.ts';
import type { Leases } from '../../contracts/coordination.ts';
import type { Log } from '../../contracts/log.ts';
import type { RecordChange } from '../../contracts/record-store.ts';
import type { Outlook } from '../../machines/autoscaling/evaluation.ts';
import type {
  GroupContext,
  GroupEvent,
  GroupIntent,
  GroupSpec,
} from '../../machines/autoscaling/group-events.ts';
import { autoscalingGroupMachine } from '../../machines/autoscaling/group-machine.ts';
import { NO_MEMORY, samePending, type GroupMemory } from '../../machines/autoscaling/memory.ts';
import type { MemberObservation } from '../../machines/autoscaling/observation.ts';
import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import type { PendingIntent } from '../../model/inspection.ts';
import type {
  ChangeOutcome,
  ScalingChange,
  ScalingDecision,
} from '../../model/envs/scaling-decision.ts';
import { shardOf } from '../../model/shards.ts';
import { getOwn } from '../../lib/get-own.ts';
import type { ActorMeasures } from '../runtime/actor-measures.ts';
import { TransitionHistory } from '../runtime/transition-history.ts';
import { Deadlines } from '../runtime/deadlines.ts';
import type { EnvMirror } from './env-mirror.ts';
import { Outbox } from '../runtime/outbox.ts';
import { LOST_LEASE } from '../pool/pool-host.ts';
import { Rebuilds } from '../runtime/rebuilds.ts';
import { pathOf } from '../runtime/state-path.ts';

/** The members' pools, as a group needs them. */
export interface GroupMembers {
  /** How those of the group stand now; a member whose pool is not known is left out. */
  observe(env: EnvRecord, group: AutoscalingGroup): Promise<readonly MemberObservation[]>;
  /**
   * Sets the member's pool to `change.to` and notes the decision there, in one conditional write:
   * where the pool has `change.from` and no decision as late as its. Where it has this very one it
   * is done. Rejects where it is not known whether it landed.
   */
  resize(
    env: EnvRecord,
    decision: Pick<ScalingDecision, 'id' | 'cause'>,
    change: ScalingChange,
  ): Promise<ChangeOutcome>;
}

export interface GroupHostDeps {
  readonly envs: Pick<EnvMirror, 'follow' | 'get' | 'change'>;
  readonly members: GroupMembers;
  readonly leases: Pick<Leases, 'lease'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly measures?: ActorMeasures;
  /**
   * Told of each decision once it was carried out; of one that a predecessor began perhaps twice.
   */
  readonly decided: (
    env: EnvRecord,
    group: string,
    decision: ScalingDecision,
    outcomes: Readonly<Record<string, ChangeOutcome>>,
  ) => Promise<void>;
  /** Until when a member is left alone (ms); 0: no more. */
  readonly saturated: (envUid: string, member: string, until: number) => void;
  /** What keeps one of the env's groups from growing is not what it was. */
  readonly limited?: (envUid: string) => void;
}

export interface GroupSnapshot {
  /** As `enabled.resting.coolingDown`. */
  readonly state: string;
  readonly memory: GroupMemory;
  /** As this replica last evaluated it; undefined where another one does. */
  readonly outlook: Outlook | undefined;
}

/** All of it, for whoever looks inside. */
export interface GroupActorView {
  readonly state: string;
  readonly context: GroupContext;
}

const LOOK_AGAIN_MS = 5_000;

/** Hosts one actor for each autoscaling group of each env; carries out what it asks for. */
export class GroupHost {
  readonly transitions: TransitionHistory<GroupEvent | { readonly type: 'FOUND' | 'THREW' }>;
  readonly #deps: GroupHostDeps;
  /** By env, by name. */
  readonly #actors = new Map<string, Map<string, Actor<typeof autoscalingGroupMachine>>>();
  readonly #outbox: Outbox;
  readonly #deadlines: Deadlines;
  readonly #led = new Set<number>();
  readonly #rebuilds: Rebuilds;
  /**
   * Groups that are being looked at, by key, and what came meanwhile: it may be too late for what
   * is seen.
   */
  readonly #looks = new Map<string, { underWay: number; missed: 'WAKE' | 'STIR' | undefined }>();

  constructor(deps: GroupHostDeps) {
    this.#deps = deps;
    this.#outbox = new Outbox(deps.log);
    this.transitions = new TransitionHistory({
      kind: 'group',
      clock: deps.clock,
      log: deps.log,
      causeOf: (event) => (event.type === 'CHANGED' ? event.outcome.kind : ''),
    });
    this.#rebuilds = new Rebuilds({
      ...deps,
      entity: 'autoscaling-group',
      outbox: this.#outbox,
      measures: deps.measures,
      transitions: this.transitions,
    });
    this.#deadlines = new Deadlines(deps.clock, (key) => {
      const at = key.indexOf('/');
      this.#due(key.slice(0, at), key.slice(at + 1));
    });
  }

  /** Envs are known; from here on every change comes by their mirror. */
  start(): void {
    this.#deps.envs.follow((change) => {
      this.#learn(change);
    });
  }

  lead(shard: number): void {
    this.#led.add(shard);
    this.#tellAll(shard, () => ({ type: 'LEAD', now: this.#deps.clock.now() }));
  }

  follow(shard: number): void {
    this.#led.delete(shard);
    this.#tellAll(shard, () => ({ type: 'FOLLOW' }));
  }

  /**
   * A claim on one of its members waits or was refused, or took the last idle one, or a start
   * failed.
   */
  wake(envUid: string, member: string): void {
    const group = this.#groupOf(envUid, member);
    if (group === undefined) return;
    const look = this.#looks.get(`${envUid}/${group}`);
    if (look) look.missed = 'WAKE';
    this.#send(envUid, group, { type: 'WAKE', now: this.#deps.clock.now() });
  }

  /** Something of the member's pool is not what it was. */
  stir(envUid: string, member: string): void {
    const group = this.#groupOf(envUid, member);
    if (group === undefined) return;
    const look = this.#looks.get(`${envUid}/${group}`);
    if (look) look.missed ??= 'STIR';
    else if (this.#actors.get(envUid)?.get(group)?.getSnapshot().context.outlook?.atRest)
      this.#send(envUid, group, { type: 'STIR', now: this.#deps.clock.now() });
  }

  group(envUid: string, name: string): GroupSnapshot | undefined {
    const snapshot = this.#actors.get(envUid)?.get(name)?.getSnapshot();
    return (
      snapshot && {
        state: pathOf(snapshot.value),
        memory: snapshot.context.memory,
        outlook: snapshot.context.outlook,
      }
    );
  }

  get outbox(): Pick<Outbox, 'underWay' | 'oldestMs' | 'dropped' | 'report'> {
    return this.#outbox;
  }

  /** All of a group's actor, for whoever looks inside. */
  whole(envUid: string, name: string): GroupActorView | undefined {
    const snapshot = this.#actors.get(envUid)?.get(name)?.getSnapshot();
    return snapshot && { state: pathOf(snapshot.value), context: snapshot.context };
  }

  pendingOf(envUid: string, name: string): readonly PendingIntent[] {
    return this.#outbox.pendingOf(`${envUid}/${name}`);
  }

  /** Makes the group's actor anew from its env's record, also one that is broken. */
  rebuild(envUid: string, name: string): void {
    this.#forget(envUid, name);
    this.#rebuilds.forget(`${envUid}/${name}`);
    this.#hostAgain(envUid, name);
  }

  #hostAgain(envUid: string, name: string): void {
    const env = this.#deps.envs.get(envUid);
    const group = env?.groups.find((one) => one.name === name);
    if (env && group) this.#host(envUid, groupSpecOf(env, group));
    this.#outbox.drain();
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

  #groupOf(envUid: string, member: string): string | undefined {
    return this.#deps.envs.get(envUid)?.members.find(({ name }) => name === member)?.config
      .scalingGroup;
  }

  #learn({ kind, record }: RecordChange<EnvRecord>): void {
    const { uid } = record;
    const groups = kind === 'put' && record.deleting === false ? record.groups : [];
    for (const name of [...(this.#actors.get(uid)?.keys() ?? [])])
      if (!groups.some((group) => group.name === name)) this.#forget(uid, name);
    for (const key of this.#rebuilds.broken) {
      const isOfEnv = key.startsWith(`${uid}/`);
      if (isOfEnv && !groups.some(({ name }) => key === `${uid}/${name}`))
        this.#rebuilds.forget(key);
    }
    for (const group of groups) {
      const words = groupSpecOf(record, group);
      if (this.#actors.get(uid)?.has(group.name))
        this.#send(uid, group.name, { type: 'RECORD', ...words, now: this.#deps.clock.now() });
      else if (!this.#rebuilds.has(`${uid}/${group.name}`)) this.#host(uid, words);
    }
  }

  #host(uid: string, words: GroupSpec): void {
    const { clock, leases } = this.#deps;
    const {
      group: { name },
    } = words;
    const actor = createActor(autoscalingGroupMachine, { input: words });
    actor.on('*', (intent) =>
      this.#outbox.put({
        name: `group ${intent.type}`,
        of: `${uid}/${name}`,
        lease: leases.lease(shardOf(uid)) ?? LOST_LEASE,
        act: () => this.#carryOut(uid, name, intent),
      }),
    );
    // looked at after each send; unobserved it would end the process
    actor.subscribe({ error: () => undefined });
    const actors =
      this.#actors.get(uid) ?? new Map<string, Actor<typeof autoscalingGroupMachine>>();
    actors.set(name, actor);
    this.#actors.set(uid, actors);
    actor.start();
    this.transitions.moved(`${uid}/${name}`, pathOf(actor.getSnapshot().value), {
      event: { type: 'FOUND' },
      group: uid,
      born: 0,
    });
    for (const [member, { until }] of Object.entries(words.memory.saturated))
      this.#deps.saturated(uid, member, until);
    if (this.#led.has(shardOf(uid))) this.#send(uid, name, { type: 'LEAD', now: clock.now() });
  }

  #forget(uid: string, name: string): void {
    const actors = this.#actors.get(uid);
    for (const member of Object.keys(
      actors?.get(name)?.getSnapshot().context.memory.saturated ?? {},
    ))
      this.#deps.saturated(uid, member, 0);
    actors?.get(name)?.stop();
    actors?.delete(name);
    this.transitions.ended(`${uid}/${name}`);
    if (actors?.size === 0) this.#actors.delete(uid);
    this.#deadlines.arm(`${uid}/${name}`, undefined);
  }

  #due(uid: string, name: string): void {
    const now = this.#deps.clock.now();
    const env = this.#deps.envs.get(uid);
    const snapshot = this.#actors.get(uid)?.get(name)?.getSnapshot();
    if (!snapshot || !env || (snapshot.context.deadline ?? Number.POSITIVE_INFINITY) > now) return;
    if (!snapshot.matches({ enabled: 'resting' })) this.#send(uid, name, { type: 'DEADLINE', now });
    else this.#look(env, snapshot.context.group);
  }

  #look(env: EnvRecord, group: AutoscalingGroup): void {
    const { clock, leases, members } = this.#deps;
    const key = `${env.uid}/${group.name}`;
    this.#deadlines.arm(key, clock.now() + LOOK_AGAIN_MS); // where this one comes to nothing
    this.#outbox.put({
      name: 'group look',
      lease: leases.lease(shardOf(env.uid)) ?? LOST_LEASE,
      act: async () => {
        const look = this.#looks.get(key) ?? { underWay: 0, missed: undefined };
        this.#looks.set(key, look);
        look.underWay += 1;
        try {
          const observed = await members.observe(env, group);
          this.#send(env.uid, group.name, {
            type: 'OBSERVED',
            members: observed,
            now: clock.now(),
          });
        } finally {
          const { missed } = look;
          look.missed = undefined;
          look.underWay -= 1;
          if (look.underWay === 0) this.#looks.delete(key);
          if (missed) this.#send(env.uid, group.name, { type: missed, now: clock.now() });
        }
      },
    });
    this.#outbox.drain();
  }

  #tellAll(shard: number, event: () => GroupEvent): void {
    for (const [uid, actors] of this.#actors)
      if (shardOf(uid) === shard)
        for (const name of [...actors.keys()]) this.#send(uid, name, event());
  }

  #send(uid: string, name: string, event: GroupEvent): void {
    const actor = this.#actors.get(uid)?.get(name);
    if (!actor) return;
    const {
      value: valueBefore,
      context: {
        memory: { saturated: before },
        outlook: outlookBefore,
      },
    } = actor.getSnapshot();
    actor.send(event);
    const { status, value, context, error } = actor.getSnapshot();
    if (status === 'error') {
      this.#forget(uid, name);
      this.#rebuilds.threw(`${uid}/${name}`, error, {
        group: uid,
        make: () => {
          this.#hostAgain(uid, name);
        },
      });
      return;
    }
    this.#deps.measures?.moved('group', pathOf(valueBefore), pathOf(value));
    this.transitions.moved(`${uid}/${name}`, pathOf(value), { event, group: uid, born: 0 });
    this.#deadlines.arm(`${uid}/${name}`, context.deadline);
    const { saturated } = context.memory;
    if (saturated !== before)
      for (const member of new Set([...Object.keys(before), ...Object.keys(saturated)]))
        this.#deps.saturated(uid, member, getOwn(saturated, member)?.until ?? 0);
    if (limitsText(context.outlook) !== limitsText(outlookBefore)) this.#deps.limited?.(uid);
    this.#outbox.drain();
  }

  async #carryOut(uid: string, name: string, intent: GroupIntent): Promise<void> {
    const { clock, envs, members, log, decided } = this.#deps;
    const env = envs.get(uid);
    if (!env) return;
    switch (intent.type) {
      case 'save': {
        const landed = await this.#save(uid, name, intent);
        return this.#send(uid, name, {
          type: landed ? 'SAVED' : 'SAVE_LOST',
          id: intent.id,
          now: clock.now(),
        });
      }
      case 'remember': {
        await this.#save(uid, name, intent);
        return;
      }
      case 'apply': {
        const outcome = await members.resize(env, intent, intent.change);
        return this.#send(uid, name, {
          type: 'CHANGED',
          id: intent.id,
          member: intent.change.member,
          outcome,
          now: clock.now(),
        });
      }
      case 'tell': {
        const {
          decision: { id, cause, changes, seen, wanted, reason, limitedBy },
          outcomes,
        } = intent;
        log.info(
          {
            entity: 'autoscaling-group',
            env: env.name,
            group: name,
            id,
            cause,
            changes,
            seen,
            wanted,
            reason,
            limitedBy,
            outcomes,
          },
          changes.length > 0 ? 'group scaled' : 'group does not grow',
        );
        return await decided(env, name, intent.decision, outcomes);
      }
    }
  }

  /**
   * Whether the env has the memory now. Rejects where that is not known: the machine asks again.
   */
  async #save(
    uid: string,
    name: string,
    { last, memory }: { readonly last: number; readonly memory: GroupMemory },
  ): Promise<boolean> {
    const told = this.#actors.get(uid)?.get(name)?.getSnapshot().context;
    let landed = false;
    await this.#deps.envs.change(uid, (record) => {
      const group = record.groups.find((one) => one.name === name);
      const words = group && groupSpecOf(record, group);
      landed = words !== undefined && samePending(words.memory, memory);
      if (landed || !words || !told || words.memory.last !== last || spelt(words) !== spelt(told))
        return record;
      landed = true;
      return { ...record, scaling: { ...record.scaling, [name]: memory } };
    });
    return landed;
  }
}

/**
 * What an env says of one of its groups: its members' bounds and priorities, and what the group's
 * leader remembered there.
 */
export const groupSpecOf = (env: EnvRecord, group: AutoscalingGroup): GroupSpec => ({
  group,
  rules: env.members
    .filter(({ config, deleting }) => config.scalingGroup === group.name && deleting === false)
    .map(({ name, config }) => ({
      name,
      minReplicas: config.minReplicas ?? 0,
      maxReplicas: config.maxReplicas ?? group.maxReplicas,
      scaleUpPriority: config.scaleUpPriority ?? config.priority ?? 0,
      scaleDownPriority: config.scaleDownPriority ?? 0 - (config.priority ?? 0),
    })),
  memory: { ...NO_MEMORY, ...getOwn(env.scaling, group.name) },
});

const limitsText = (outlook: Outlook | undefined): string =>
  outlook?.limits.map(({ message }) => message).join('\n') ?? '';

const spelt = ({ group, rules }: Pick<GroupSpec, 'group' | 'rules'>): string =>
  JSON.stringify([group, rules]);

import { createActor, type SnapshotFrom } from 'xstate';
import type { RecordChange } from '../../contracts/record-store.ts';
import type { Outlook } from '../../machines/autoscaling/evaluation.ts';
import type {
  GroupContext,
  GroupEvent,
  GroupIntent,
  GroupSpec,
} from '../../machines/autoscaling/group-events.ts';
import { autoscalingGroupMachine } from '../../machines/autoscaling/group-machine.ts';
import type { GroupMemory } from '../../machines/autoscaling/memory.ts';
import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import { shardOf } from '../../model/shards.ts';
import { getOwn } from '../../lib/plain-data.ts';
import { ActorHost, type ActorKind, type Change, pathOf } from '../runtime/actor-host.ts';
import type { ActorRuntime, OutboxEntry } from '../runtime/actor-runtime.ts';
import type { EnvMirror } from '../runtime/record-mirror.ts';
import { groupEffects, type GroupEffectsDeps } from './group-effects.ts';
import { groupSpecOf } from './group-spec.ts';

export interface GroupHostDeps extends Pick<GroupEffectsDeps, 'members' | 'decided'> {
  readonly runtime: ActorRuntime;
  readonly envs: Pick<EnvMirror, 'follow' | 'get' | 'change'>;
  /** `until`: ms since the epoch; 0 ends the suspension. */
  readonly saturated: (envUid: string, member: string, until: number) => void;
  readonly limited?: (envUid: string) => void;
}

export interface GroupSnapshot {
  /** Full path, such as `enabled.resting.coolingDown`. */
  readonly state: string;
  readonly memory: GroupMemory;
  readonly outlook: Outlook | undefined;
}

export interface GroupActorView {
  readonly state: string;
  readonly context: GroupContext;
}

type Snapshot = SnapshotFrom<typeof autoscalingGroupMachine>;

const LOOK_AGAIN_MS = 5_000;
const PREFIX = 'g';

export class GroupHost {
  readonly actors: ActorHost<Snapshot, GroupEvent, GroupIntent, GroupSpec>;
  readonly #deps: GroupHostDeps;
  readonly #carryOut: ReturnType<typeof groupEffects>;
  readonly #names = new Map<string, Set<string>>();
  /** `missed` is the event that came during the observation. */
  readonly #looks = new Map<string, { underWay: number; missed: 'WAKE' | 'STIR' | undefined }>();

  constructor(deps: GroupHostDeps) {
    this.#deps = deps;
    this.#carryOut = groupEffects({
      ...deps,
      clock: deps.runtime.clock,
      log: deps.runtime.log,
      contextOf: (envUid, name) => this.actors.snapshot(keyOf(envUid, name))?.context,
    });
    this.actors = new ActorHost(deps.runtime, this.#kind());
  }

  start(): void {
    this.#deps.envs.follow((change) => {
      this.#learn(change);
    });
  }

  /**
   * Call it if a claim on the member waits, was refused or took the last idle instance, or if a
   * start failed.
   */
  wake(envUid: string, member: string): void {
    const key = this.#groupOf(envUid, member);
    if (key === undefined) return;
    const look = this.#looks.get(key);
    if (look) look.missed = 'WAKE';
    this.actors.send(key, { type: 'WAKE', now: this.#now() });
  }

  stir(envUid: string, member: string): void {
    const key = this.#groupOf(envUid, member);
    if (key === undefined) return;
    const look = this.#looks.get(key);
    if (look) look.missed ??= 'STIR';
    else if (this.actors.snapshot(key)?.context.outlook?.atRest)
      this.actors.send(key, { type: 'STIR', now: this.#now() });
  }

  group(envUid: string, name: string): GroupSnapshot | undefined {
    const snapshot = this.actors.snapshot(keyOf(envUid, name));
    return (
      snapshot && {
        state: pathOf(snapshot.value),
        memory: snapshot.context.memory,
        outlook: snapshot.context.outlook,
      }
    );
  }

  whole(key: string): GroupActorView | undefined {
    const snapshot = this.actors.snapshot(key);
    return snapshot && { state: pathOf(snapshot.value), context: snapshot.context };
  }

  /** Works even if the actor is broken. */
  rebuild(key: string): void {
    this.#releaseMembers(key, this.actors.snapshot(key)?.context);
    void this.actors.rebuild(key);
  }

  #kind(): ActorKind<Snapshot, GroupEvent, GroupIntent, GroupSpec> {
    return {
      name: 'group',
      entity: 'autoscaling-group',
      prefix: PREFIX,
      create: (input) => createActor(autoscalingGroupMachine, { input }),
      pathOf: ({ value }) => pathOf(value),
      listed: (key) => ({ group: partsOf(key)[0], born: 0 }),
      causeOf: (event) => (event.type === 'CHANGED' ? event.outcome.kind : ''),
      isOver: () => false,
      deadlineOf: ({ context }) => context.deadline,
      due: (key) => {
        this.#due(key);
      },
      leading: ledWithEnv,
      intent: (key, intent) => this.#entry(key, intent),
      changed: (key, change) => {
        this.#changed(key, change);
      },
      threw: (key, last) => {
        this.#releaseMembers(key, last?.context);
      },
      remake: (key) => {
        this.#remake(key);
      },
    };
  }

  #now(): number {
    return this.#deps.runtime.clock.now();
  }

  #groupOf(envUid: string, member: string): string | undefined {
    const group = this.#deps.envs.get(envUid)?.members.find(({ name }) => name === member)
      ?.config.scalingGroup;
    return group === undefined ? undefined : keyOf(envUid, group);
  }

  #learn({ kind, record }: RecordChange<EnvRecord>): void {
    const { uid } = record;
    const groups = kind === 'put' && record.deleting === false ? record.groups : [];
    for (const name of [...(this.#names.get(uid) ?? [])])
      if (!groups.some((group) => group.name === name)) this.#end(uid, name);
    if (groups.length > 0) this.#names.set(uid, new Set(groups.map(({ name }) => name)));
    else this.#names.delete(uid);
    for (const group of groups) {
      const key = keyOf(uid, group.name);
      const spec = groupSpecOf(record, group);
      if (this.actors.has(key))
        this.actors.send(key, { type: 'RECORD', ...spec, now: this.#now() });
      else if (!this.actors.rebuilds.has(key)) this.actors.make(key, spec);
    }
  }

  #remake(key: string): void {
    const [uid, name] = partsOf(key);
    const env = this.#deps.envs.get(uid);
    const group = env?.groups.find((one) => one.name === name);
    if (env && group) this.actors.make(key, groupSpecOf(env, group));
  }

  #end(uid: string, name: string): void {
    const key = keyOf(uid, name);
    this.#releaseMembers(key, this.actors.snapshot(key)?.context);
    this.actors.end(key);
  }

  #releaseMembers(key: string, context: GroupContext | undefined): void {
    const [uid] = partsOf(key);
    for (const member of Object.keys(context?.memory.saturated ?? {}))
      this.#deps.saturated(uid, member, 0);
  }

  #due(key: string): void {
    const now = this.#now();
    const env = this.#deps.envs.get(partsOf(key)[0]);
    const snapshot = this.actors.snapshot(key);
    if (!snapshot || !env || (snapshot.context.deadline ?? Number.POSITIVE_INFINITY) > now) return;
    if (!snapshot.matches({ enabled: 'resting' })) this.actors.send(key, { type: 'DEADLINE', now });
    else this.#look(env, snapshot.context.group);
  }

  #look(env: EnvRecord, group: AutoscalingGroup): void {
    const { members, runtime } = this.#deps;
    const key = keyOf(env.uid, group.name);
    runtime.arm(PREFIX, key, this.#now() + LOOK_AGAIN_MS); // in case this one fails
    runtime.outbox.put({
      name: 'group look',
      lease: runtime.leaseOf(shardOf(env.uid)),
      act: async () => {
        const look = this.#looks.get(key) ?? { underWay: 0, missed: undefined };
        this.#looks.set(key, look);
        look.underWay += 1;
        try {
          const observed = await members.observe(env, group);
          this.actors.send(key, { type: 'OBSERVED', members: observed, now: this.#now() });
        } finally {
          const { missed } = look;
          look.missed = undefined;
          look.underWay -= 1;
          if (look.underWay === 0) this.#looks.delete(key);
          if (missed) this.actors.send(key, { type: missed, now: this.#now() });
        }
      },
    });
    runtime.outbox.drain();
  }

  #entry(key: string, intent: GroupIntent): Omit<OutboxEntry, 'of'> {
    const [uid, name] = partsOf(key);
    return {
      name: `group ${intent.type}`,
      lease: this.#deps.runtime.leaseOf(shardOf(uid)),
      act: async () => {
        const event = await this.#carryOut(uid, name, intent);
        if (event) this.actors.send(key, event);
      },
    };
  }

  #changed(key: string, { before, after }: Change<Snapshot, GroupEvent>): void {
    const [uid] = partsOf(key);
    const { memory, outlook } = after.context;
    const saturated = memory.saturated;
    const saturatedBefore = before?.context.memory.saturated ?? {};
    if (saturated !== saturatedBefore)
      for (const member of new Set([...Object.keys(saturatedBefore), ...Object.keys(saturated)]))
        this.#deps.saturated(uid, member, getOwn(saturated, member)?.until ?? 0);
    if (before && limitsText(outlook) !== limitsText(before.context.outlook))
      this.#deps.limited?.(uid);
  }
}

const limitsText = (outlook: Outlook | undefined): string =>
  outlook?.limits.map(({ message }) => message).join('\n') ?? '';

/** `{env uid}/{name}`, for a member or a group. */
export const keyOf = (envUid: string, name: string): string => `${envUid}/${name}`;

export const partsOf = (key: string): readonly [envUid: string, name: string] => {
  const at = key.indexOf('/');
  return [key.slice(0, at), key.slice(at + 1)];
};

export const ledWithEnv = {
  shardOf: (key: string): number => shardOf(partsOf(key)[0]),
  lead: (now: number) => ({ type: 'LEAD' as const, now }),
  follow: { type: 'FOLLOW' as const },
};

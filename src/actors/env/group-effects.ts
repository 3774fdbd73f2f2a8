import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { getOwn } from '../../lib/plain-data.ts';
import type {
  Asks,
  GroupContext,
  GroupEvent,
  GroupIntent,
} from '../../machines/autoscaling/group-events.ts';
import { samePending } from '../../machines/autoscaling/memory.ts';
import type { MemberObservation } from '../../machines/autoscaling/observation.ts';
import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import { askedOf } from '../../model/envs/env-copy.ts';
import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import type {
  ChangeOutcome,
  CompletedDecision,
  ScalingChange,
  ScalingDecision,
} from '../../model/envs/scaling-decision.ts';
import type { EnvMirror } from '../runtime/record-mirror.ts';
import { groupSpecOf, isSameSpec } from './group-spec.ts';

export interface GroupMembers {
  /** Excludes members whose pool is unknown. */
  observe(env: EnvRecord, group: AutoscalingGroup): Promise<readonly MemberObservation[]>;
  /**
   * One conditional write of size and decision. Succeeds if the pool has this decision already.
   * Rejects if the write may still land.
   */
  resize(
    env: EnvRecord,
    decision: Pick<ScalingDecision, 'id' | 'cause'>,
    change: ScalingChange,
  ): Promise<ChangeOutcome>;
}

export interface GroupEffectsDeps {
  readonly envs: Pick<EnvMirror, 'get' | 'change'>;
  readonly members: GroupMembers;
  readonly clock: Clock;
  readonly log: Log;
  readonly decided: (env: EnvRecord, group: string, decision: CompletedDecision) => Promise<void>;
  readonly contextOf: (envUid: string, name: string) => GroupContext | undefined;
}

export const groupEffects =
  (deps: GroupEffectsDeps) =>
  async (envUid: string, name: string, intent: GroupIntent): Promise<GroupEvent | undefined> => {
    const { clock, envs, members, decided, contextOf } = deps;
    const env = envs.get(envUid);
    if (!env) return undefined;
    switch (intent.type) {
      case 'save': {
        const landed = await save(deps, { envUid, name }, intent);
        return { type: landed ? 'SAVED' : 'SAVE_LOST', id: intent.id, now: clock.now() };
      }
      case 'remember': {
        const by = contextOf(envUid, name);
        if (by) await save(deps, { envUid, name }, { ...intent, by });
        return undefined;
      }
      case 'apply': {
        const { id, change } = intent;
        const outcome = await members.resize(env, intent, change);
        return { type: 'CHANGED', id, member: change.member, outcome, now: clock.now() };
      }
      case 'tell': {
        logDecision(deps.log, { env: env.name, group: name }, intent);
        await decided(env, name, { ...intent.decision, outcomes: intent.outcomes });
        return undefined;
      }
    }
  };

/** Rejects if the outcome is unknown: then the machine retries. */
const save = async (
  { envs }: GroupEffectsDeps,
  { envUid, name }: { readonly envUid: string; readonly name: string },
  { last, memory, by, asks = {} }: Saving,
): Promise<boolean> => {
  let landed = false;
  await envs.change(envUid, (record) => {
    const group = record.groups.find((one) => one.name === name);
    const spec = group && groupSpecOf(record, group);
    landed = spec !== undefined && samePending(spec.memory, memory);
    if (landed || !spec || spec.memory.last !== last || !isSameSpec(spec, by)) return record;
    const members = asking(record.members, asks);
    if (!members) return record;
    landed = true;
    return { ...record, members, scaling: { ...record.scaling, [name]: memory } };
  });
  return landed;
};

type Saving = Pick<Extract<GroupIntent, { readonly type: 'save' }>, 'last' | 'memory' | 'by'> & {
  readonly asks?: Asks;
};

const asking = (members: readonly EnvMember[], asks: Asks): readonly EnvMember[] | undefined => {
  const isAsBefore = Object.entries(asks).every(([name, { was }]) =>
    members.some((member) => member.name === name && askedOf(member) === was),
  );
  return isAsBefore
    ? members.map((member) => {
        const ask = getOwn(asks, member.name);
        return ask ? { ...member, asked: ask.is } : member;
      })
    : undefined;
};

const logDecision = (
  log: Log,
  of: { readonly env: string; readonly group: string },
  { decision, outcomes }: Extract<GroupIntent, { readonly type: 'tell' }>,
): void => {
  const { id, cause, changes, seen, wanted, reason, limitedBy } = decision;
  log.info(
    {
      entity: 'autoscaling-group',
      ...of,
      id,
      cause,
      changes,
      seen,
      wanted,
      reason,
      limitedBy,
      outcomes,
    },
    changes.length > 0 ? 'group-scaled' : 'group-does-not-grow',
  );
};

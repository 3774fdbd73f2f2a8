import type { EnvMember } from '../../model/envs/env.ts';
import type { InspectedActor, ShownFields } from '../../model/inspection.ts';
import type { MemberActorView } from '../env/member-host.ts';
import { fields, moment } from './shown-fields.ts';

/** A member's actor for people. */
export const inspectMember = (
  key: string,
  { state, context }: MemberActorView,
  since: number,
): InspectedActor => {
  const {
    fact: { env, member, pool, saturatedUntil },
    trouble,
    done,
    asked,
    deadline,
    leading,
  } = context;
  const [envUid = '', name = ''] = key.split('/');
  return {
    kind: 'member',
    key,
    name: env ? `${env.owner.namespace}/${env.name}/${name}` : key,
    shardKey: envUid,
    state,
    since,
    context: fields({
      leading,
      asked,
      done: done && fields({ intent: done.type, at: moment(done.at) }),
      trouble: trouble && { ...trouble },
      pool:
        pool &&
        fields({
          uid: pool.uid,
          revision: pool.revision,
          replicas: pool.replicas,
          deleting: pool.deleting,
        }),
      saturatedUntil: moment(saturatedUntil),
    }),
    deadlines:
      deadline === undefined ? [] : [{ what: 'what it needs is tried again', at: deadline }],
    why: [
      ...(leading ? [] : ['another replica decides for it; this one follows']),
      ...(WHY[state] === undefined ? [] : [WHY[state]]),
      ...(trouble ? [`${trouble.reason}: ${trouble.why} (${trouble.times} times)`] : []),
      ...(asked === undefined ? [] : [`${asked} was asked for, and is not answered yet`]),
    ],
    record: member ? shownMember(member) : {},
  };
};

export const shownMember = ({
  name,
  clusterId,
  createdAt,
  replicas,
  config,
  deleting,
}: EnvMember): ShownFields =>
  fields({
    name,
    clusterId,
    createdAt: moment(createdAt),
    replicas,
    deleting,
    scalingGroup: config.scalingGroup,
    instanceType: config.instanceType,
    multiplier: config.multiplier,
    minReplicas: config.minReplicas,
    maxReplicas: config.maxReplicas,
    priority: config.priority,
    scaleUpPriority: config.scaleUpPriority,
    scaleDownPriority: config.scaleDownPriority,
  });

const WHY: Readonly<Record<string, string>> = {
  pending: 'its env lists it, and its pool is not there yet',
  active: 'its pool is there, and as its env asks',
  saturated: 'its pool could not grow; its group leaves it alone for a while',
  draining: 'it is to go, and its pool goes first',
  unreachable: 'its cluster can not be reached from here',
  error: 'what it needs failed, and is tried again after a pause',
};

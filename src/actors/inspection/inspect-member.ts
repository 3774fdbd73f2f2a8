import { memberStateOf } from '../../machines/env/member-decisions.ts';
import { envMemberMachine } from '../../machines/env/member-machine.ts';
import type { EnvMember, MemberState } from '../../model/envs/env.ts';
import type { InspectedActor, ShownFields } from '../../model/inspection.ts';
import type { MemberActorView } from '../env/member-host.ts';
import { fields, moment } from './shown-fields.ts';

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
  } = context;
  const status = memberStateOf(context);
  const [envUid = '', name = ''] = key.split('/');
  return {
    kind: 'member',
    key,
    name: env ? `${env.owner.namespace}/${env.name}/${name}` : key,
    shardKey: envUid,
    state,
    since,
    status,
    context: fields({
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
    deadlines: deadline === undefined ? [] : [{ what: 'its action is tried again', at: deadline }],
    why: [
      WHY[status],
      ...descriptionOf(state),
      ...(trouble ? [`${trouble.reason}: ${trouble.why} (${trouble.times} times)`] : []),
      ...(asked === undefined ? [] : [`${asked} was requested, and is not answered yet`]),
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

const WHY: Readonly<Record<MemberState, string>> = {
  Pending: 'its env lists it, and its pool does not exist yet',
  Active: 'its pool exists',
  Saturated: 'its pool could not grow; its group skips it for a while',
  Draining: 'it is being removed, after its pool',
  Unreachable: 'its cluster cannot be reached from here',
  Error: 'its action failed, and is tried again after a pause',
};

const descriptionOf = (path: string): readonly string[] => {
  const { description } = envMemberMachine.getStateNodeById(`env-member.${path}`);
  return description === undefined ? [] : [description];
};

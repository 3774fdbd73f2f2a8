import type { EnvRecord } from '../../model/envs/env.ts';
import type { AwaitedMoment, InspectedActor, Shown, ShownFields } from '../../model/inspection.ts';
import type { ScalingDecision } from '../../model/envs/scaling-decision.ts';
import type { GroupActorView } from '../env/group-host.ts';
import { fields, moment } from './shown-fields.ts';

type Context = GroupActorView['context'];

export const inspectGroup = (
  key: string,
  {
    view: { state, context },
    env,
    since,
  }: { readonly view: GroupActorView; readonly env: EnvRecord | undefined; readonly since: number },
): InspectedActor => {
  const { group, rules, outlook, leading, woken, deadline } = context;
  const [envUid = ''] = key.split('/');
  return {
    kind: 'group',
    key,
    name: env ? `${env.owner.namespace}/${env.name}/${group.name}` : key,
    shardKey: envUid,
    state,
    since,
    context: fields({
      leading,
      woken,
      rules: rules.map((rule) => ({ ...rule })),
      memory: shownMemory(context.memory),
      outlook:
        outlook &&
        fields({
          at: moment(outlook.at),
          seen: { ...outlook.seen },
          wanted: outlook.wanted,
          limitedBy: [...outlook.limitedBy],
          limits: outlook.limits.map((limit) => ({ ...limit })),
          countsDown: outlook.countsDown,
          retryAt: moment(outlook.retryAt),
          headroom: { ...outlook.headroom },
        }),
    }),
    deadlines:
      deadline === undefined
        ? []
        : [{ what: 'the next evaluation', at: deadline }, ...retryOf(context)],
    why: whyOf(context),
    record: shownGroup(context),
  };
};

export const shownGroup = ({ group, memory }: Pick<Context, 'group' | 'memory'>): ShownFields =>
  fields({
    name: group.name,
    enabled: group.enabled,
    minReplicas: group.minReplicas,
    maxReplicas: group.maxReplicas,
    scaleUpPolicy: { ...group.scaleUpPolicy },
    scaleDownPolicy: { ...group.scaleDownPolicy },
    lastDecision: memory.last,
    pending: memory.pending && shownDecision(memory.pending),
  });

const retryOf = ({ outlook }: Context): readonly AwaitedMoment[] =>
  outlook?.retryAt === undefined ? [] : [{ what: 'it may grow again', at: outlook.retryAt }];

const shownMemory = (memory: Context['memory']): ShownFields =>
  fields({
    seenAt: moment(memory.seenAt),
    grewAt: moment(memory.grewAt),
    coolingFrom: moment(memory.coolingFrom),
    lowSince: moment(memory.lowSince),
    claimedAt: moment(memory.claimedAt),
    windows: { idle: memory.idle.length, recommended: memory.recommended.length },
    saturated: Object.fromEntries(
      Object.entries(memory.saturated).map(([member, { until, reason }]) => [
        member,
        fields({ until: moment(until), reason }),
      ]),
    ),
    limited: Object.keys(memory.limited),
  });

const shownDecision = ({
  id,
  cause,
  changes,
  wanted,
  reason,
  limitedBy,
}: ScalingDecision): Shown => ({
  id,
  cause,
  changes: changes.map((change) => ({ ...change })),
  wanted,
  reason,
  limitedBy: [...limitedBy],
});

const whyOf = ({ group, leading, outlook, memory }: Context): readonly string[] => [
  ...(group.enabled ? [] : ['it is switched off']),
  ...(leading ? [] : ['another replica decides for it; this replica follows']),
  ...(outlook
    ? [
        `${outlook.wanted} are wanted; there are ${outlook.seen.running} running, ` +
          `${outlook.seen.idle} idle, ${outlook.seen.starting} starting, ${outlook.seen.pending} ` +
          'waiting or refused claims',
        ...outlook.limitedBy.map((limit) => `it has no more instances because of: ${limit}`),
        ...(outlook.countsDown
          ? ['more instances are idle than needed; they are removed when the windows end']
          : []),
      ]
    : []),
  ...(memory.pending
    ? [`decision ${memory.pending.id} is being applied: ${memory.pending.reason}`]
    : []),
];

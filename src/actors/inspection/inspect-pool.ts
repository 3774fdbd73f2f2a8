import type { AwaitedMoment, InspectedActor, ShownFields } from '../../model/inspection.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import type { PoolActorView } from '../pool/pool-snapshot.ts';
import { fields, moment, tenant } from './shown-fields.ts';

/** Omits the definition and the owner's spec, which may contain secrets. */
export const inspectPool = (
  { context, phase, state, waitsForPlace }: PoolActorView,
  since: number,
): InspectedActor => {
  const { record } = context;
  return {
    kind: 'pool',
    key: record.uid,
    name: `${record.owner.namespace}/${record.name}`,
    shardKey: record.uid,
    state,
    since,
    status: phase,
    context: fields({
      counts: { ...context.counts },
      updated: { ...context.updated },
      ordered: context.ordered,
      tokens: Math.floor(context.bucket.tokens),
      leading: context.leading,
      filledOnce: context.filledOnce,
      rolling: context.rolling,
      proven: context.proven,
      breaker: shownBreaker(context.breaker),
      conditions: context.conditions.map((each) => ({ ...each })),
      savedAt: moment(context.savedAt),
    }),
    deadlines: deadlinesOf(context),
    why: [...whyOf(context), ...(waitsForPlace ? [WAITS_FOR_PLACE] : [])],
    record: shownPool(record),
  };
};

export const shownPool = (record: PoolRecord): ShownFields =>
  fields({
    uid: record.uid,
    revision: record.revision,
    name: record.name,
    owner: tenant(record.owner),
    createdAt: moment(record.createdAt),
    env: record.env && { ...record.env },
    replicas: record.replicas,
    minReplicas: record.minReplicas,
    maxReplicas: record.maxReplicas,
    updateStrategy: { ...record.updateStrategy },
    templateVersion: record.templateVersion,
    updateRevision: record.updateRevision,
    unrendered: record.unrendered,
    unresolved: record.unresolved && { ...record.unresolved },
    breaker: shownBreaker(record.breaker),
    conditions: record.conditions?.map((each) => ({ ...each })),
    deleting: record.deleting,
  });

const shownBreaker = ({ failures, pausedUntil, reason }: PoolRecord['breaker']): ShownFields =>
  fields({ failures, pausedUntil: moment(pausedUntil), reason });

const WAITS_FOR_PLACE =
  'it waits: the machine starts only a few instances with readiness probes at a time';

type Context = PoolActorView['context'];

const deadlinesOf = ({ deadline, breaker, leading }: Context): readonly AwaitedMoment[] => [
  ...(deadline === undefined ? [] : [{ what: 'it plans again', at: deadline }]),
  ...(leading && breaker.pausedUntil > 0
    ? [{ what: 'starts are tried again', at: breaker.pausedUntil }]
    : []),
];

const whyOf = ({
  record,
  counts,
  ordered,
  leading,
  breaker,
  rolling,
}: Context): readonly string[] => {
  const { starting, idle, unavailable, running, retiring } = counts;
  return [
    ...(leading ? [] : ['another replica decides for it; this replica follows']),
    `${record.replicas} replicas are wanted; ${idle} are idle, ${starting} starting, ` +
      `${unavailable} not claimable, ${running} running`,
    ...(ordered > 0 ? [`${ordered} more were ordered, and have not appeared yet`] : []),
    ...(retiring > 0 ? [`${retiring} are being retired`] : []),
    ...(breaker.failures > 0
      ? [`${breaker.failures} starts in a row have failed; the last one: ${breaker.reason}`]
      : []),
    ...(breaker.pausedUntil > 0 ? ['nothing is started while the breaker pauses'] : []),
    ...(rolling ? ['instances of older revisions are being replaced'] : []),
    ...(record.unresolved
      ? [`its specification cannot be rendered: ${record.unresolved.message}`]
      : []),
    ...(record.deleting === false
      ? []
      : ['it is being deleted; it is removed when it has no unclaimed instances']),
  ];
};

import { sandboxMachine } from '../../machines/sandbox/machine.ts';
import { expiryOf } from '../../model/pools/claim-rules.ts';
import type { AwaitedMoment, InspectedActor, ShownFields } from '../../model/inspection.ts';
import type { Claim, InstanceRecord } from '../../model/sandbox.ts';
import { recordIn, type SandboxSnapshot } from '../sandbox/sandbox-snapshot.ts';
import { fields, moment, tenant } from './shown-fields.ts';

type Context = SandboxSnapshot['context'];

/** Without definition and secrets. */
export const inspectSandbox = (snapshot: SandboxSnapshot, since: number): InspectedActor => {
  const { context, path, status } = snapshot;
  const record = recordIn(context);
  return {
    kind: 'sandbox',
    key: context.id,
    name: `sb-${context.id}`,
    shardKey: context.poolUid,
    state: path,
    since,
    status,
    ...(isPaused(snapshot) ? { paused: true } : {}),
    context: contextOf(context),
    deadlines: deadlinesOf(context),
    why: whyOf(snapshot),
    record: record ? shownInstance(record) : {},
  };
};

export const shownInstance = (
  record: Omit<InstanceRecord, 'revision' | 'state'> &
    Partial<Pick<InstanceRecord, 'revision' | 'state'>>,
): ShownFields =>
  fields({
    id: record.id,
    revision: record.revision,
    state: record.state,
    poolUid: record.poolUid,
    poolName: record.poolName,
    poolOwner: tenant(record.poolOwner),
    createdAt: moment(record.createdAt),
    updateRevision: record.updateRevision,
    cpu: record.cpu,
    memory: record.memory,
    containerImages: record.containerImages,
    endpoints: Object.keys(record.endpoints ?? {}),
    startupTimeoutMs: record.startupTimeoutMs,
    claim: record.claim && shownClaim(record.claim),
    end: record.end && { ...record.end },
  });

const shownClaim = ({
  owner,
  claimedAt,
  pausedAt,
  idleTimeoutMs,
  maxLifetimeMs,
  mark,
}: Claim): ShownFields =>
  fields({
    owner: tenant(owner),
    claimedAt: moment(claimedAt),
    pausedAt: moment(pausedAt),
    idleTimeoutMs,
    maxLifetimeMs,
    underIdempotencyKey: mark !== undefined,
  });

const contextOf = (context: Context): ShownFields =>
  fields({
    poolUid: context.poolUid,
    ordered: context.launchOrder !== undefined,
    startedAt: moment(context.startedAt),
    availableAt: moment(context.availableAt),
    since: moment(context.since),
    unready: context.unready,
    activeAt: moment(context.activeAt),
    working: context.working,
    claiming:
      context.claiming &&
      fields({
        claim: shownClaim(context.claiming.claim),
        until: moment(context.claiming.until),
        repeated: context.claiming.repeated,
      }),
    end: context.end && { ...context.end },
    asked: context.asked,
    forgotten: context.forgotten,
    gone:
      context.gone &&
      fields({
        at: moment(context.gone.at),
        exitCode: context.gone.exitCode,
        removed: context.gone.removed ?? false,
      }),
  });

const deadlinesOf = (context: Context): readonly AwaitedMoment[] => {
  const claim = context.record?.claim;
  const expiry =
    claim && !context.end ? expiryOf(claim, context.activeAt, context.working) : undefined;
  return [
    ...(context.deadline === undefined
      ? []
      : [{ what: 'the state is checked again', at: context.deadline }]),
    ...(context.claiming
      ? [{ what: 'the request of the claim times out', at: context.claiming.until }]
      : []),
    ...(expiry ? [{ what: `it ends: ${expiry.reason}`, at: expiry.at }] : []),
  ];
};

const isPaused = ({ state, context }: Pick<SandboxSnapshot, 'state' | 'context'>): boolean =>
  state === 'running' && context.record?.claim?.pausedAt !== undefined;

const whyOf = ({ path, state, tags, context }: SandboxSnapshot): readonly string[] => [
  ...(descriptionOf(path) ?? []),
  ...(tags.has('notReady') ? [`it is not ready: ${context.unready ?? 'no reason is known'}`] : []),
  ...(context.claiming
    ? [
        `${context.claiming.claim.owner.team}/${context.claiming.claim.owner.user} is claiming ` +
          'it',
      ]
    : []),
  ...(state === 'running' && context.record?.claim
    ? [`${context.record.claim.owner.team}/${context.record.claim.owner.user} claimed it`]
    : []),
  ...(isPaused({ state, context }) ? ['it is paused until it is resumed'] : []),
  ...(context.working > 0
    ? [`${context.working} commands or terminals are in progress on this replica`]
    : []),
  ...(context.end ? [`it is ending or has ended: ${context.end.reason}`] : []),
  ...(context.gone
    ? [
        context.gone.exitCode === null
          ? 'none of its processes runs any more'
          : 'none of its processes runs any more; the main process ended with ' +
            `${context.gone.exitCode}`,
      ]
    : []),
];

const descriptionOf = (path: string): readonly string[] | undefined => {
  const { description } = sandboxMachine.getStateNodeById(`sandbox.${path}`);
  return description === undefined ? undefined : [description];
};

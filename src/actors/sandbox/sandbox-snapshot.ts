import type { SnapshotFrom, StateValue } from 'xstate';
import { statusOf } from '../../machines/sandbox/arithmetic.ts';
import type { SandboxContext, SandboxTag } from '../../machines/sandbox/events.ts';
import type { sandboxMachine } from '../../machines/sandbox/machine.ts';
import type {
  LaunchOrder,
  SandboxStatus,
  Claim,
  FinishedSandbox,
  End,
  InstanceRecord,
} from '../../model/sandbox.ts';
import { expiryOf } from '../../model/pools/claim-rules.ts';
import { sandboxNotFound } from '../../model/refusals.ts';
import type { SandboxView } from '../views.ts';
import { pathOf } from '../runtime/actor-host.ts';
import { hasPairs, type TextPairs } from '../../model/claim-terms.ts';
import type { PoolCounts } from '../../model/pools/pool.ts';
import { isKeyed, isOfManager, type RequestFingerprint } from '../../model/request-fingerprint.ts';
import { sameTenant, type Tenant } from '../../model/tenant.ts';

type Snapshot = SnapshotFrom<typeof sandboxMachine>;

export interface SandboxSnapshot {
  readonly state: string;
  readonly path: string;
  readonly status: SandboxStatus;
  readonly tags: ReadonlySet<SandboxTag>;
  readonly context: SandboxContext;
}

export const shown = (snapshot: Snapshot): SandboxSnapshot => {
  const { value, context } = snapshot;
  const state = stateOf(value);
  return {
    state,
    path: pathOf(value),
    status: statusOf(state, context),
    tags: tagsOf(snapshot),
    context,
  };
};

export const recordIn = ({
  record,
  launchOrder,
}: SandboxContext): LaunchOrder['record'] | undefined => record ?? launchOrder?.record;

export const stateOf = (value: StateValue): string => {
  if (typeof value === 'string') return value;
  for (const state in value) return state;
  return '';
};

/** XState types tags as strings; the machine has only these. */
export const tagsOf = ({ tags }: Pick<Snapshot, 'tags'>): ReadonlySet<SandboxTag> =>
  tags as ReadonlySet<string> as ReadonlySet<SandboxTag>;

export const viewOf = ({ context, status }: SandboxSnapshot, now: number): SandboxView => {
  const record = context.record ?? context.launchOrder?.record;
  if (!record) throw sandboxNotFound();
  const claim = context.record?.claim;
  return {
    id: record.id,
    revision: context.record?.revision ?? '0',
    poolName: record.poolName,
    owner: claim?.owner ?? record.poolOwner,
    status,
    startedAt: context.startedAt,
    terminatedAt: context.gone?.at,
    recycledAt: undefined,
    cpu: record.cpu,
    memory: record.memory,
    containerImages: record.containerImages,
    endReason: status === 'Stopping' || status === 'Failed' ? context.end?.reason : undefined,
    ...(claim ? claimView(claim, { context, status, now }) : NO_CLAIM),
  };
};

const NO_CLAIM = {
  claimedAt: undefined,
  durationSeconds: undefined,
  idleTimeoutMs: 0,
  idleExpiresAt: undefined,
  endsAt: undefined,
} as const;

const claimView = (
  claim: Claim,
  { context, status, now }: SandboxSnapshotAt,
): Pick<
  SandboxView,
  keyof typeof NO_CLAIM | 'metadata' | 'autoPause' | 'autoResume' | 'paused'
> => {
  const { claimedAt, idleTimeoutMs, metadata, autoPause, autoResume } = claim;
  const idleExpiry =
    status === 'Running' && idleTimeoutMs > 0
      ? expiryOf({ ...withoutEnd(claim), maxLifetimeMs: 0 }, context.activeAt, 0)
      : undefined;
  return {
    claimedAt,
    durationSeconds: wholeSeconds(claimedAt, context.gone?.at ?? now),
    idleTimeoutMs,
    idleExpiresAt: idleExpiry?.at,
    endsAt: expiryOf({ ...claim, idleTimeoutMs: 0 }, 0, 0)?.at,
    metadata,
    autoPause,
    autoResume,
    ...(claim.pausedAt !== undefined && status === 'Running' ? { paused: true as const } : {}),
  };
};

interface SandboxSnapshotAt extends Pick<SandboxSnapshot, 'context' | 'status'> {
  readonly now: number;
}

export const viewOfFinished = (finished: FinishedSandbox): SandboxView => ({
  id: finished.id,
  revision: 'finished',
  poolName: finished.poolName,
  owner: finished.owner,
  status: 'Completed',
  claimedAt: finished.claimedAt,
  startedAt: finished.startedAt,
  terminatedAt: finished.terminatedAt,
  recycledAt: finished.recycledAt,
  durationSeconds: wholeSeconds(finished.claimedAt, finished.terminatedAt),
  cpu: finished.cpu,
  memory: finished.memory,
  containerImages: finished.containerImages,
  endReason: finished.endReason,
  idleTimeoutMs: 0,
  idleExpiresAt: undefined,
  endsAt: undefined,
});

const withoutEnd = ({ endsAt: _end, ...claim }: Claim): Claim => claim;

const wholeSeconds = (from: number, to: number): number =>
  Math.max(0, Math.floor((to - from) / 1_000));

export interface Placement {
  readonly id: string;
  readonly status: SandboxStatus;
  readonly poolUid: string;
  readonly poolName: string;
  readonly updateRevision: string;
  /** The pool's owner if unclaimed. */
  readonly owner: Tenant;
  readonly createdAt: number;
  readonly claimedAt: number | undefined;
  readonly availableAt: number | undefined;
  /** As seen by this replica on a healthy node; undefined if it is ready. */
  readonly unreadyAt?: number;
  /**
   * Idempotency key of the claiming request. Absent after the claim was undone: the request then
   * claimed nothing.
   */
  readonly mark?: string;
  /** The end of its claim is not remembered. */
  readonly isMarkOfManager?: boolean;
  readonly metadata?: TextPairs;
  /** Launched for one claim, and outside its pool until that claim succeeds. */
  readonly isApart?: boolean;
}

export const isOfPool = ({ isApart, claimedAt }: Placement): boolean =>
  isApart !== true || claimedAt !== undefined;

export const samePlace = (a: Placement, b: Placement): boolean =>
  a.status === b.status &&
  a.availableAt === b.availableAt &&
  a.unreadyAt === b.unreadyAt &&
  a.claimedAt === b.claimedAt &&
  a.createdAt === b.createdAt &&
  a.poolUid === b.poolUid &&
  a.poolName === b.poolName &&
  a.mark === b.mark &&
  sameTenant(a.owner, b.owner) &&
  samePairs(a.metadata, b.metadata);

const samePairs = (a: TextPairs | undefined, b: TextPairs | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    Object.keys(a).length === Object.keys(b).length &&
    hasPairs(a, b));

export const countedAs = (placement: Placement): keyof PoolCounts | undefined => {
  if (!isOfPool(placement)) return undefined;
  switch (placement.status) {
    case 'Starting':
      return 'starting';
    case 'Idle':
      return placement.availableAt === undefined ? 'unavailable' : 'idle';
    case 'Running':
      return 'running';
    case 'Stopping':
      return placement.claimedAt === undefined ? 'retiring' : 'stopping';
    case 'Failed':
      return 'failed';
    case 'Completed':
      return undefined;
  }
};

const keyOf = (mark: RequestFingerprint | undefined): string | undefined =>
  mark && isKeyed(mark) ? mark.key : undefined;

export const placementOf = (
  record: Pick<
    InstanceRecord,
    'id' | 'poolUid' | 'poolName' | 'poolOwner' | 'createdAt' | 'updateRevision' | 'claimBy'
  > & { readonly claim?: Claim; readonly end?: End },
  status: SandboxStatus,
  {
    availableAt,
    unreadyAt,
    end,
  }: Pick<Placement, 'availableAt' | 'unreadyAt'> & { readonly end?: End },
): Placement => ({
  id: record.id,
  status,
  poolUid: record.poolUid,
  poolName: record.poolName,
  updateRevision: record.updateRevision,
  owner: record.claim?.owner ?? record.poolOwner,
  createdAt: record.createdAt,
  claimedAt: record.claim?.claimedAt,
  mark: (end ?? record.end)?.reason === 'claim-failed' ? undefined : keyOf(record.claim?.mark),
  isMarkOfManager: record.claim?.mark && isOfManager(record.claim.mark) ? true : undefined,
  metadata: record.claim?.metadata,
  availableAt,
  unreadyAt,
  isApart: record.claimBy === undefined ? undefined : true,
});

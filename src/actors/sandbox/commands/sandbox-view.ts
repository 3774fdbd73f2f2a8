import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import { expiryOf } from '../../../model/pools/claim-rules.ts';
import { isInstanceId } from '../../../model/identifiers.ts';
import { sandboxNotFound } from '../../../model/refusals.ts';
import type { Claim, FinishedSandbox } from '../../../model/sandbox.ts';
import { sameTenant, type Caller } from '../../../model/tenant.ts';
import type { SandboxView } from '../../views.ts';

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

/**
 * Returns the live sandbox as it stands now: as the mirror shows it where that is good news, else
 * read uncached. Every answer by id is made of this, so that none says no because a mirror is
 * behind. Undefined: there is none.
 */
export const currentSandbox = async (
  supervisor: Supervisor,
  sandboxId: string,
  namespace: string,
): Promise<SandboxSnapshot | undefined> => {
  if (!isInstanceId(sandboxId)) return undefined;
  await supervisor.refresh(sandboxId, namespace);
  return supervisor.sandbox(sandboxId);
};

interface FindOptions {
  readonly sandboxId: string;
  /** Admins may look at and end any; they run nothing in another's. */
  readonly adminsToo?: boolean;
  /** One that another replica has ended a moment ago may still show as running. */
  readonly endedToo?: boolean;
}

/**
 * Returns the caller's live sandbox, or an unclaimed instance of a pool of the caller's. Whether it
 * is unknown, finished or another's, the refusal is the same.
 */
export const findSandbox = async (
  supervisor: Supervisor,
  caller: Caller,
  { sandboxId, adminsToo = false, endedToo = false }: FindOptions,
): Promise<SandboxSnapshot> => {
  const shown = endedToo ? supervisor.sandbox(sandboxId) : undefined;
  const snapshot =
    shown?.status === 'Running'
      ? shown
      : await currentSandbox(supervisor, sandboxId, caller.namespace);
  if (!snapshot || !(isOf(snapshot, caller) || (adminsToo && caller.role === 'admin')))
    throw sandboxNotFound();
  return snapshot;
};

/**
 * Returns the caller's sandbox where the mirror shows that it runs; what ended a moment ago may be
 * shown so, too.
 */
export const shownRunning = (
  supervisor: Supervisor,
  caller: Caller,
  sandboxId: string,
): SandboxSnapshot | undefined => {
  const shown = supervisor.sandbox(sandboxId);
  return shown?.status === 'Running' && isOf(shown, caller) ? shown : undefined;
};

const isOf = ({ context }: SandboxSnapshot, caller: Caller): boolean => {
  const record = context.record ?? context.launchOrder?.record;
  const owner = context.record?.claim?.owner ?? record?.poolOwner;
  return owner !== undefined && sameTenant(owner, caller);
};

const withoutEnd = ({ endsAt: _end, ...claim }: Claim): Claim => claim;

const wholeSeconds = (from: number, to: number): number =>
  Math.max(0, Math.floor((to - from) / 1_000));

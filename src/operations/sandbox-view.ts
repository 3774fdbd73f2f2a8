import type { SandboxSnapshot } from '../actors/sandbox-snapshot.ts';
import type { Supervisor } from '../actors/supervisor.ts';
import { expiryOf } from '../model/claim-rules.ts';
import { isInstanceId } from '../model/identifiers.ts';
import { sandboxNotFound } from '../model/refusals.ts';
import type { FinishedSandbox } from '../model/sandbox.ts';
import { sameTenant, type Caller } from '../model/tenant.ts';
import type { SandboxView } from './views.ts';

export const viewOf = ({ context, status }: SandboxSnapshot, now: number): SandboxView => {
  const record = context.record ?? context.birth?.record;
  if (!record) throw sandboxNotFound();
  const claim = context.record?.claim;
  const expiry = claim && status === 'Running' && claim.idleTimeoutMs > 0 ? expiryOf({ ...claim, maxLifetimeMs: 0 }, context.activeAt, 0) : undefined;
  return {
    id: record.id,
    revision: context.record?.revision ?? '0',
    poolName: record.poolName,
    owner: claim?.owner ?? record.poolOwner,
    status,
    claimedAt: claim?.claimedAt,
    startedAt: context.startedAt,
    terminatedAt: context.gone?.at,
    recycledAt: undefined,
    durationSeconds: claim && wholeSeconds(claim.claimedAt, context.gone?.at ?? now),
    cpu: record.cpu,
    memory: record.memory,
    containerImages: record.containerImages,
    endReason: status === 'Stopping' || status === 'Failed' ? context.end?.reason : undefined,
    idleTimeoutMs: claim?.idleTimeoutMs ?? 0,
    idleExpiresAt: expiry?.at,
  };
};

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
});

/**
 * The caller's live sandbox, or an unclaimed instance of a pool of the caller's. Whether it is unknown, finished or
 * another's, the refusal is the same. Admins may look at and end any; they run nothing in another's. `endedToo`: one that
 * another replica has ended a moment ago may still show as running.
 */
export const findSandbox = async (supervisor: Supervisor, caller: Caller, sandboxId: string, options: { readonly adminsToo?: boolean; readonly endedToo?: boolean } = {}): Promise<SandboxSnapshot> => {
  if (!isInstanceId(sandboxId)) throw sandboxNotFound();
  if (!options.endedToo || supervisor.sandbox(sandboxId)?.status !== 'Running') await supervisor.freshen(sandboxId, caller.namespace);
  return shownSandbox(supervisor, caller, sandboxId, options);
};

/** The same, as the mirror shows it now. */
export const shownSandbox = (supervisor: Supervisor, caller: Caller, sandboxId: string, options: { readonly adminsToo?: boolean } = {}): SandboxSnapshot => {
  const snapshot = isInstanceId(sandboxId) ? supervisor.sandbox(sandboxId) : undefined;
  const record = snapshot?.context.record ?? snapshot?.context.birth?.record;
  if (!snapshot || !record) throw sandboxNotFound();
  const owner = snapshot.context.record?.claim?.owner ?? record.poolOwner;
  if (!sameTenant(owner, caller) && !(options.adminsToo && caller.role === 'admin')) throw sandboxNotFound();
  return snapshot;
};

const wholeSeconds = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1_000));

import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import { isInstanceId } from '../../../model/identifiers.ts';
import { sandboxNotFound } from '../../../model/refusals.ts';
import { sameTenant, type Caller } from '../../../model/tenant.ts';

/**
 * From the mirror if it runs, otherwise after an uncached read. All answers by id use this, so that
 * a late mirror never causes a 404.
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
  /** Admins may read and end any sandbox, but not run commands in it. */
  readonly adminsToo?: boolean;
  /** Accepts a running sandbox from the mirror, even if another replica has just ended it. */
  readonly endedToo?: boolean;
}

/**
 * The caller's sandbox, or an unclaimed instance of the caller's pool. The refusal is the same for
 * unknown, finished and other tenants' sandboxes.
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

/** By the mirror, which may miss a recent end. */
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

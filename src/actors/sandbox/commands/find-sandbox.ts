import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import { isInstanceId } from '../../../model/identifiers.ts';
import { sandboxNotFound } from '../../../model/refusals.ts';
import { sameTenant, type Caller } from '../../../model/tenant.ts';

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

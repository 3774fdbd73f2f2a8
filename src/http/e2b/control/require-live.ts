import { sandboxNotFound } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { Operations } from '../../../services/operations.ts';
import type { SandboxView } from '../../../actors/views.ts';

/** Refuses a stopping sandbox as not found. */
export const requireLive = async (
  operations: Pick<Operations, 'getSandbox'>,
  caller: Caller,
  sandboxId: string,
): Promise<SandboxView> => {
  const view = await operations.getSandbox(caller, sandboxId);
  if (view.status !== 'Running') throw sandboxNotFound();
  return view;
};

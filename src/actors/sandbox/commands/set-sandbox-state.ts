import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import { sandboxNotFound } from '../../../model/refusals.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { running } from './exec-in-sandbox.ts';
import { findSandbox } from './find-sandbox.ts';
import { viewOf } from '../sandbox-snapshot.ts';

/**
 * Pauses the caller's running sandbox, or has it go on; as it is already counts as done (operation
 * `PUT /sandboxes/{sandboxId}/state`). Durable, and so, when it resolves.
 */
export const setSandboxState =
  ({
    supervisor,
    clock,
  }: {
    readonly supervisor: Supervisor;
    readonly clock: Clock;
  }): SandboxOperations['setSandboxState'] =>
  async (caller, sandboxId, state) => {
    const { context } = running(await findSandbox(supervisor, caller, { sandboxId }));
    await supervisor.pauses.set(context.id, state === 'paused');
    const after = supervisor.sandbox(sandboxId);
    if (!after) throw sandboxNotFound();
    return viewOf(after, clock.now());
  };

import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import { sandboxNotFound } from '../../../model/refusals.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { running } from './exec-in-sandbox.ts';
import { findSandbox } from './find-sandbox.ts';
import { viewOf } from '../sandbox-snapshot.ts';

/**
 * Succeeds if it is already in that state (operation `PUT /sandboxes/{sandboxId}/state`). Durable
 * when this resolves.
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

import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import { unavailable } from '../../../model/refusals.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { endDurably, isEndDurable } from './end-durably.ts';
import { findSandbox } from './find-sandbox.ts';
import { viewOf } from '../sandbox-snapshot.ts';

/**
 * Operation `DELETE /sandboxes/{sandboxId}`; retires an unclaimed instance of the caller's pool.
 * The end is durable when this resolves. Legal in every state, and repeatable.
 */
export const deleteSandbox =
  (deps: {
    readonly supervisor: Supervisor;
    readonly clock: Clock;
  }): SandboxOperations['deleteSandbox'] =>
  async (caller, sandboxId) => {
    const { supervisor, clock } = deps;
    const before = await findSandbox(supervisor, caller, {
      sandboxId,
      adminsToo: true,
      endedToo: true,
    });
    const end = await endDurably(deps, sandboxId, 'deleted');
    if (!isEndDurable(end))
      throw unavailable('the end of the sandbox could not be recorded in time; repeat the request');
    // A retirement removes the record that the view needs.
    const view = end?.context.record || end?.context.launchOrder ? end : before;
    return { ...viewOf(view, clock.now()), status: 'Stopping' };
  };

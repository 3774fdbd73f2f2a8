import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import { RecordConflict, type SandboxDriver } from '../contracts/sandbox-driver.ts';
import { requireMatch } from '../model/if-match.ts';
import { sandboxNotFound, sandboxNotRunning, unavailable } from '../model/refusals.ts';
import type { Operations } from './operations.ts';
import { findSandbox, viewOf } from './sandbox-view.ts';

const DEADLINE_MS = 5_000;

/** Sets a running sandbox's idle timeout, 0 for never; counts as activity (operation `PUT /sandboxes/{sandboxId}/idle-timeout`). */
export const setIdleTimeout = (deps: { readonly supervisor: Supervisor; readonly driver: SandboxDriver; readonly clock: Clock }): Operations['setIdleTimeout'] =>
  async (caller, sandboxId, { idleTimeoutMs, ifMatch }) => {
    const until = deps.clock.now() + DEADLINE_MS;
    for (;;) {
      const { status, context } = findSandbox(deps.supervisor, caller, sandboxId);
      if (status !== 'Running' || !context.record) throw sandboxNotRunning(status);
      requireMatch(ifMatch, context.record.revision);
      try {
        const record = await deps.driver.amend(context.record.id, { idleTimeoutMs }, context.record.revision);
        deps.supervisor.send(sandboxId, { type: 'AMENDED', record, now: deps.clock.now() });
        const after = deps.supervisor.sandbox(sandboxId);
        if (!after) throw sandboxNotFound();
        return viewOf(after, deps.clock.now());
      } catch (error) {
        if (!(error instanceof RecordConflict)) throw error;
        // Another change of the same sandbox came first; of several at once each round settles one.
        if (deps.clock.now() >= until) throw unavailable('the sandbox changed meanwhile; try again');
      }
    }
  };

import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import { RecordConflict, type SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { type IfMatch, requireMatch } from '../../model/if-match.ts';
import { sandboxNotFound, sandboxNotRunning, unavailable } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Operations } from '../operations.ts';
import { findSandbox, viewOf } from './sandbox-view.ts';
import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';
import type { SandboxView } from '../views.ts';

export interface SetIdleTimeoutDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly clock: Clock;
}

const DEADLINE_MS = 5_000;
/** Changes of one sandbox that are under way at once. */
const MOST_CHANGES = 64;

/**
 * Sets a running sandbox's idle timeout, 0 for never; counts as activity (operation `PUT
 * /sandboxes/{sandboxId}/idle-timeout`).
 */
export const setIdleTimeout = (deps: SetIdleTimeoutDeps): Operations['setIdleTimeout'] => {
  /**
   * The last change of each sandbox that is under way: of one process they go in turn, so that none
   * makes another repeat.
   */
  const underWay = new Map<string, Promise<unknown>>();
  const changes = new KeyedSemaphore(MOST_CHANGES);
  return async (caller, sandboxId, change) => {
    if (!changes.acquire(sandboxId))
      throw unavailable('the sandbox is being changed too often; try again');
    const until = deps.clock.now() + DEADLINE_MS;
    const turn = (underWay.get(sandboxId) ?? Promise.resolve()).then(() =>
      amend(deps, caller, { sandboxId, change, until }),
    );
    const settled = turn.catch(() => undefined);
    underWay.set(sandboxId, settled);
    try {
      return await turn;
    } finally {
      changes.release(sandboxId);
      if (underWay.get(sandboxId) === settled) underWay.delete(sandboxId);
    }
  };
};

interface Amendment {
  readonly sandboxId: string;
  readonly change: { readonly idleTimeoutMs: number; readonly ifMatch?: IfMatch | undefined };
  readonly until: number;
}

const amend = async (
  deps: SetIdleTimeoutDeps,
  caller: Caller,
  { sandboxId, change, until }: Amendment,
): Promise<SandboxView> => {
  const { supervisor, driver, clock } = deps;
  for (;;) {
    const { status, context } = await findSandbox(supervisor, caller, sandboxId);
    if (status !== 'Running' || !context.record) throw sandboxNotRunning(status);
    requireMatch(change.ifMatch, context.record.revision);
    // Another replica's change may come first.
    if (clock.now() >= until) throw unavailable('the sandbox changed meanwhile; try again');
    try {
      const record = await driver.amend(
        context.record.id,
        { idleTimeoutMs: change.idleTimeoutMs },
        context.record.revision,
      );
      supervisor.send(sandboxId, { type: 'AMENDED', record, now: clock.now() });
      const after = supervisor.sandbox(sandboxId);
      if (!after) throw sandboxNotFound();
      return viewOf(after, clock.now());
    } catch (error) {
      if (!(error instanceof RecordConflict)) throw error;
      await supervisor.refresh(context.record.id, caller.namespace, 'never');
    }
  }
};

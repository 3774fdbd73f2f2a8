import type { SandboxSnapshot } from '../../actors/sandbox/sandbox-snapshot.ts';
import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import { unavailable } from '../../model/refusals.ts';
import type { Operations } from '../operations.ts';
import { findSandbox, viewOf } from './sandbox-view.ts';

const DEADLINE_MS = 5_000;
/**
 * Ends a sandbox, or retires an unclaimed instance of a pool of the caller's (operation `DELETE
 * /sandboxes/{sandboxId}`). When it resolves it is durable that it ends. Legal in every state;
 * repeating it is harmless.
 */
export const deleteSandbox =
  (deps: { readonly supervisor: Supervisor; readonly clock: Clock }): Operations['deleteSandbox'] =>
  async (caller, sandboxId) => {
    const { supervisor, clock } = deps;
    const before = await findSandbox(supervisor, caller, sandboxId, {
      adminsToo: true,
      endedToo: true,
    });
    const until = clock.now() + DEADLINE_MS;
    let end: SandboxSnapshot | undefined = before;
    do {
      supervisor.send(sandboxId, { type: 'END', reason: 'deleted', now: clock.now() });
      end = await supervisor.until(
        sandboxId,
        (snapshot) => !snapshot || isDurable(snapshot),
        until,
      );
      // A claim that was under way may have won over the retirement: then the sandbox is asked to
      // end once more.
    } while (end?.state === 'running' && clock.now() < until);
    if (end && !isDurable(end))
      throw unavailable('the end of the sandbox could not be noted in time; repeat the request');
    // A retirement drops the record that an answer is made of.
    const view = end?.context.record || end?.context.launchOrder ? end : before;
    return { ...viewOf(view, clock.now()), status: 'Stopping' };
  };

const isDurable = ({ tags }: SandboxSnapshot): boolean => !tags.has('endNotDurable');

import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import { InstanceGone, type SandboxDriver } from '../contracts/sandbox-driver.ts';
import { invalidToken, sandboxNotRunning, tooManyTerminals } from '../model/refusals.ts';
import { runningSandbox } from './exec-in-sandbox.ts';
import type { OpenTerminal, Operations } from './operations.ts';
import { Seats } from './seats.ts';

export interface TerminalDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly clusterId: string;
}

const TOKEN_LIFETIME_MS = 30_000;
const MOST_TERMINALS = 16;
const SHELL = ['/bin/sh', '-c', 'exec "$(command -v bash || echo sh)" -l'];
const WATCH_MS = 3_600_000;

/** Issues a single-use token of 30 seconds for a terminal (operation `POST /sandboxes/{sandboxId}/exec-token`). */
export const createExecToken = (deps: TerminalDeps): Operations['createExecToken'] => async (caller, sandboxId) => {
  await runningSandbox(deps.supervisor, caller, sandboxId);
  return await deps.coordination.issueToken(sandboxId, TOKEN_LIFETIME_MS);
};

/** Opens a terminal for a token; the token is used up whatever comes of it. At most 16 a sandbox. */
export const openTerminal = (deps: TerminalDeps): Operations['openTerminal'] => {
  const seats = new Seats(MOST_TERMINALS);
  return async ({ clusterId, sandboxId, token, cols, rows }) => {
    const { supervisor, driver, coordination } = deps;
    const meant = await coordination.redeemToken(token);
    if (meant === undefined || meant !== sandboxId || clusterId !== deps.clusterId) throw invalidToken();
    const snapshot = supervisor.sandbox(sandboxId);
    if (snapshot?.status !== 'Running') throw sandboxNotRunning(snapshot?.status ?? 'Completed');
    if (!seats.take(sandboxId)) throw tooManyTerminals(MOST_TERMINALS);
    try {
      const terminal = await driver.attach(sandboxId, { argv: SHELL, cols, rows });
      return opened(deps, { sandboxId, terminal, leave: () => seats.leave(sandboxId) });
    } catch (error) {
      seats.leave(sandboxId);
      if (error instanceof InstanceGone) throw sandboxNotRunning('Stopping');
      throw error;
    }
  };
};

const opened = ({ supervisor, clock }: TerminalDeps, { sandboxId, terminal, leave }: { sandboxId: string; terminal: OpenTerminal['terminal']; leave: () => void }): OpenTerminal => {
  let open = true;
  const close = (): void => {
    if (!open) return;
    open = false;
    leave();
    terminal.close();
    supervisor.wake(sandboxId);
  };
  const touch = (): void => { supervisor.send(sandboxId, { type: 'ACTIVE', now: clock.now() }); };
  touch();
  return { terminal, touch, close, ended: untilEnded(supervisor, clock, { sandboxId, isOpen: () => open }) };
};

/** Settles when the sandbox has left Running, or the terminal was closed. */
const untilEnded = async (supervisor: Supervisor, clock: Clock, { sandboxId, isOpen }: { sandboxId: string; isOpen: () => boolean }): Promise<void> => {
  for (;;) {
    const snapshot = await supervisor.until(sandboxId, (seen) => seen?.status !== 'Running' || !isOpen(), clock.now() + WATCH_MS);
    if (snapshot?.status !== 'Running' || !isOpen()) return;
  }
};

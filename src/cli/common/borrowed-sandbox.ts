import { ApiError, ConnectionFailed } from '../client/api-error.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { Sandbox } from '../client/wire.ts';
import { type CliContext, say } from './context.ts';
import { explain } from './failure.ts';
import { catchInterrupts, Interrupted } from './interrupts.ts';

export interface Borrowing {
  readonly poolName: string;
  readonly idleTimeout?: string;
  readonly waitTimeoutSeconds?: number;
}

const GIVE_BACK_TRIES = 3;
const RETRY_MS = 300;

/**
 * Always returns the sandbox: also after an error, a signal, or an interrupted claim. Signals exit
 * with 128 + n.
 */
export const withBorrowedSandbox = async (
  {
    api,
    context,
    borrowing,
  }: { readonly api: SandpoolClient; readonly context: CliContext; readonly borrowing: Borrowing },
  use: (sandbox: Sandbox, signal: AbortSignal) => Promise<number>,
): Promise<number> => {
  let sandbox: Sandbox | undefined;
  const interrupts = catchInterrupts((exitCode) => {
    if (sandbox) context.stderr.write(`sandpool: ${leftBehind(sandbox)}\n`);
    process.exit(exitCode);
  }, context.stdout);
  try {
    // Never aborted: a claim that completes unseen would leave a sandbox behind.
    ({ sandbox } = await api.call('claimSandbox', {
      body: {
        poolName: borrowing.poolName,
        idleTimeout: borrowing.idleTimeout,
        waitTimeoutSeconds: borrowing.waitTimeoutSeconds,
      },
    }));
    interrupts.signal.throwIfAborted();
    return await use(sandbox, interrupts.signal);
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode;
    throw error;
  } finally {
    if (sandbox) await giveBack(api, sandbox, context);
    interrupts.dispose();
  }
};

/** Does not return the sandbox. Signals, and a reader that leaves, only end the use. */
export const withInterrupts = async (
  use: (signal: AbortSignal) => Promise<number>,
  output?: CliContext['stdout'],
): Promise<number> => {
  const interrupts = catchInterrupts((exitCode) => process.exit(exitCode), output);
  try {
    return await use(interrupts.signal);
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode;
    throw error;
  } finally {
    interrupts.dispose();
  }
};

const giveBack = async (
  api: SandpoolClient,
  sandbox: Sandbox,
  context: CliContext,
): Promise<void> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await api.call('deleteSandbox', { params: { sandboxId: sandbox.sandboxId } });
      return;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return; // it has ended
      if (attempt === GIVE_BACK_TRIES || !mayPass(error)) {
        await say(context, leftBehind(sandbox), ...explain(error));
        return;
      }
      await new Promise((resolve) => {
        setTimeout(resolve, RETRY_MS);
      });
    }
  }
};

const mayPass = (error: unknown): boolean =>
  (error instanceof ConnectionFailed && error.code !== 'DEADLINE') ||
  (error instanceof ApiError && error.status >= 500);

const leftBehind = ({ sandboxId }: Sandbox): string =>
  `sandbox ${sandboxId} could not be deleted; delete it with: sandpool sandboxes delete ` +
  `${sandboxId}`;

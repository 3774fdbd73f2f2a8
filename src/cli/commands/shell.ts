import type { Command } from 'commander';
import { durationText, waitOption } from '../common/arguments.ts';
import { withBorrowedSandbox, withInterrupts } from '../common/borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import { interact, terminalSize } from '../terminal/interactive.ts';
import { leaf, SANDPOOL_FAILED } from '../common/leaf.ts';
import type { Action } from '../common/action.ts';

interface ShellOptions extends ConnectionOptions {
  readonly pool: string;
  readonly idleTimeout?: string;
  readonly wait?: number;
}

export const shellLeaf = (action: Action): Command =>
  addConnectionOptions(
    leaf({
      usage: 'shell [sandbox]',
      summary:
        'Opens a shell in a sandbox. Without a sandbox, claims one and deletes it afterwards. ' +
        'Exits with the shell’s exit code, or with 125 if Sandpool itself failed.',
      usageExit: SANDPOOL_FAILED,
      examples: ['sandpool shell', 'sandpool shell 0190d4a5-7b1e-7c3a-9f00-1234567890ab'],
    })
      .option('--pool <name>', 'the pool to claim from', 'default')
      .option(
        '--idle-timeout <duration>',
        'end the claimed sandbox after this long without activity, such as 5m',
        durationText,
      )
      .addOption(waitOption()),
  ).action(
    action(SANDPOOL_FAILED, async (context, [sandbox], options: ShellOptions) => {
      const api = await connect(options, context);
      const open = async (sandboxId: string, signal: AbortSignal): Promise<number> =>
        await interact(await api.terminal(sandboxId, terminalSize(context)), context, { signal });
      try {
        if (typeof sandbox === 'string')
          return await withInterrupts(
            async (signal) => await open(sandbox, signal),
            context.stdout,
          );
        const borrowing = {
          poolName: options.pool,
          idleTimeout: options.idleTimeout,
          waitTimeoutSeconds: options.wait,
        };
        return await withBorrowedSandbox(
          { api, context, borrowing },
          async ({ sandboxId }, signal) => await open(sandboxId, signal),
        );
      } finally {
        api.close();
      }
    }),
  );

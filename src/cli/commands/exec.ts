import type { Command } from 'commander';
import { withInterrupts } from '../borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts';
import { leaf, SANDPOOL_FAILED } from '../leaf.ts';
import type { Action } from '../action.ts';
import { addCommandOptions } from './run.ts';
import { type CommandOptions, commandWords, runCommand } from './run-command.ts';

/** `exec SANDBOX -- CMD`: in a sandbox that is there and stays. */
export const execLeaf = (action: Action): Command =>
  addCommandOptions(addConnectionOptions(leaf({
    usage: 'exec <sandbox> [command...]',
    summary: 'Runs a command in a running sandbox. Ends with the command’s exit code, and with 125 when Sandpool itself failed.',
    usageExit: SANDPOOL_FAILED,
    examples: ['sandpool exec 0190d4a5-7b1e-7c3a-9f00-1234567890ab -- ls -l /', 'sandpool exec -t "$SANDBOX" -- vi notes'],
  })))
    .action(action(SANDPOOL_FAILED, async (context, [sandboxId, words], options: ConnectionOptions & CommandOptions) => {
      const argv = commandWords(words as readonly string[]);
      const api = await connect(options, context);
      try {
        return await withInterrupts(async (signal) =>
          await runCommand({ api, context, sandboxId: sandboxId as string, argv, options, signal }));
      } finally {
        api.close();
      }
    }));

import type { Command } from 'commander';
import { durationText, waitOption, wholeNumber } from '../common/arguments.ts';
import { withBorrowedSandbox } from '../common/borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import type { Action } from '../common/action.ts';
import { leaf, SANDPOOL_FAILED } from '../common/leaf.ts';
import {
  type CommandOptions,
  commandWords,
  MAX_TIMEOUT_SECONDS,
  runCommand,
} from './run-command.ts';
import { typedCommand } from '../common/typed-command.ts';

interface RunOptions extends ConnectionOptions, CommandOptions {
  readonly pool: string;
  readonly idleTimeout?: string;
  readonly wait?: number;
}

export const runLeaf = (action: Action): Command =>
  addCommandOptions(
    addConnectionOptions(
      leaf({
        usage: 'run [command...]',
        summary:
          'Runs a command in a new sandbox, and deletes the sandbox afterwards. Prints the ' +
          'output as it arrives. Exits with the command’s exit code, or with 125 if Sandpool ' +
          'itself failed. If the reader of the output exits, as head does, the command is ended.',
        usageExit: SANDPOOL_FAILED,
        examples: [
          'sandpool run -- uname -a',
          'sandpool run --pool default -t -- top',
          'echo hello | sandpool run -i -- tr a-z A-Z',
        ],
      })
        .option('--pool <name>', 'the pool to claim from', 'default')
        .option(
          '--idle-timeout <duration>',
          'end the sandbox after this long without activity, such as 5m',
          durationText,
        )
        .addOption(waitOption()),
    ),
  ).action(
    action(SANDPOOL_FAILED, async (context, [words], options: RunOptions) => {
      const argv = commandWords(words as readonly string[]);
      if (options.tty) typedCommand(argv); // throws before a sandbox is claimed
      const api = await connect(options, context);
      try {
        const borrowing = {
          poolName: options.pool,
          idleTimeout: options.idleTimeout,
          waitTimeoutSeconds: options.wait,
        };
        return await withBorrowedSandbox(
          { api, context, borrowing },
          async ({ sandboxId }, signal) =>
            await runCommand({ api, context, sandboxId, argv, options, signal }),
        );
      } finally {
        api.close();
      }
    }),
  );

export const addCommandOptions = (command: Command): Command =>
  command
    .option('-t, --tty', 'with a terminal, connected to yours')
    .option('-i, --interactive', 'forward standard input until its end')
    .option(
      '--timeout <seconds>',
      `end the command after this long, at most ${MAX_TIMEOUT_SECONDS}; not with -t`,
      wholeNumber(1, MAX_TIMEOUT_SECONDS),
    )
    .passThroughOptions();

import type { Command } from 'commander';
import { withInterrupts } from '../common/borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import { print } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { leaf, SANDPOOL_FAILED } from '../common/leaf.ts';
import type { Action } from '../common/action.ts';
import { addCommandOptions } from './run.ts';
import {
  type CommandOptions,
  type CommandRun,
  commandWords,
  processRequest,
  runCommand,
} from './run-command.ts';

interface ExecOptions extends ConnectionOptions, CommandOptions {
  readonly detach?: boolean;
}

export const execLeaf = (action: Action): Command =>
  optionsAfterSandbox(
    addCommandOptions(
      addConnectionOptions(
        leaf({
          usage: 'exec <sandbox> [command...]',
          summary:
            'Runs a command in a running sandbox. Prints its output as it arrives. Exits with ' +
            'the command’s exit code, or with 125 if Sandpool itself failed. If the reader of ' +
            'the output exits, as head does, the command is ended.',
          usageExit: SANDPOOL_FAILED,
          examples: [
            'sandpool exec 0190d4a5-7b1e-7c3a-9f00-1234567890ab -- ls -l /',
            'sandpool exec -t "$SANDBOX" -- vi notes',
            'sandpool exec --detach "$SANDBOX" -- make all',
          ],
        }),
      ),
    ).option('--detach', 'leave it running, and print its id for sandpool attach'),
  ).action(
    action(SANDPOOL_FAILED, async (context, [sandboxId, words], options: ExecOptions) => {
      const argv = commandWords(words as readonly string[]);
      const api = await connect(options, context);
      try {
        const run = { api, context, sandboxId: sandboxId as string, argv, options };
        if (options.detach) return await startAndLeave(run);
        return await withInterrupts(
          async (signal) => await runCommand({ ...run, signal }),
          context.stdout,
        );
      } finally {
        api.close();
      }
    }),
  );

const startAndLeave = async (run: Omit<CommandRun, 'signal'>): Promise<number> => {
  if (run.options.tty || run.options.interactive)
    throw new CliFailure('a detached command has no terminal and no input', [
      'omit -t and -i, and read its output with sandpool attach',
    ]);
  const { process } = await run.api.call('startProcess', {
    params: { sandboxId: run.sandboxId },
    body: processRequest(run),
  });
  await print(run.context.stdout, `${process.processId}\n`);
  return 0;
};

/** Commander would pass options after the sandbox to the command. */
const optionsAfterSandbox = (command: Command): Command => {
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (words) => {
    const {
      operands: [sandbox, next, ...rest],
      unknown,
    } = parse([...words]);
    if (sandbox === undefined || next === undefined)
      return { operands: sandbox === undefined ? [] : [sandbox], unknown };
    if (!next.startsWith('-') || next === '--')
      return { operands: [sandbox, next, ...rest], unknown };
    const after = parse([next, ...rest]);
    return { operands: [sandbox, ...after.operands], unknown: [...unknown, ...after.unknown] };
  };
  return command;
};

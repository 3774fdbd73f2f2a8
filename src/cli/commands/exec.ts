import type { Command } from 'commander';
import { withInterrupts } from '../borrowed-sandbox.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts';
import { leaf, SANDPOOL_FAILED } from '../leaf.ts';
import type { Action } from '../action.ts';
import { addCommandOptions } from './run.ts';
import { type CommandOptions, commandWords, runCommand } from './run-command.ts';

/** `exec SANDBOX -- CMD`: in a sandbox that is there and stays. */
export const execLeaf = (action: Action): Command =>
  optionsAfterSandbox(
    addCommandOptions(
      addConnectionOptions(
        leaf({
          usage: 'exec <sandbox> [command...]',
          summary:
            'Runs a command in a running sandbox. Ends with the command’s exit code, and ' +
            'with 125 when Sandpool itself failed.',
          usageExit: SANDPOOL_FAILED,
          examples: [
            'sandpool exec 0190d4a5-7b1e-7c3a-9f00-1234567890ab -- ls -l /',
            'sandpool exec -t "$SANDBOX" -- vi notes',
          ],
        }),
      ),
    ),
  ).action(
    action(
      SANDPOOL_FAILED,
      async (context, [sandboxId, words], options: ConnectionOptions & CommandOptions) => {
        const argv = commandWords(words as readonly string[]);
        const api = await connect(options, context);
        try {
          return await withInterrupts(
            async (signal) =>
              await runCommand({
                api,
                context,
                sandboxId: sandboxId as string,
                argv,
                options,
                signal,
              }),
          );
        } finally {
          api.close();
        }
      },
    ),
  );

/**
 * Options may also stand between the sandbox and the command: commander leaves all that follows the
 * first operand to the command.
 */
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

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import type { Action, ServiceAction } from './action.ts';
import { execLeaf } from './commands/exec.ts';
import { poolsGroup } from './commands/pools.ts';
import { runLeaf } from './commands/run.ts';
import { sandboxesGroup } from './commands/sandboxes.ts';
import { serveLeaf } from './commands/serve.ts';
import { shellLeaf } from './commands/shell.ts';
import { stopLeaf } from './commands/stop.ts';
import { connect, type ConnectionOptions } from './connection.ts';
import { type CliContext, say } from './context.ts';
import { explain } from './failure.ts';
import { USAGE_EXIT, UsageEnd, withUsageExit } from './leaf.ts';

const FAILED = 1;

/** Runs one command line, without the program's own name, and answers its exit code. Never rejects. */
export const runCommandLine = async (argv: readonly string[], context: CliContext): Promise<number> => {
  let exitCode = 0;
  const action: Action = (failureExit, work) => async (...args) => {
    const [options, operands] = [args.at(-2), args.slice(0, -2)];
    try {
      exitCode = await work(context, operands, options as Parameters<typeof work>[2]);
    } catch (error) {
      await say(context, ...explain(error));
      exitCode = failureExit;
    }
  };
  const serviceAction: ServiceAction = (work) => action(FAILED, async (_context, operands, options) => {
    const api = await connect(options as ConnectionOptions, context);
    try {
      await work(api, context, operands, options as Parameters<typeof work>[3]);
      return 0;
    } finally {
      api.close();
    }
  });
  try {
    await program(action, serviceAction, context).parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof UsageEnd) return error.exitCode;
    await say(context, ...explain(error));
    return FAILED;
  }
};

const program = (action: Action, serviceAction: ServiceAction, { stdout, stderr }: CliContext): Command => {
  const root = withUsageExit(new Command('sandpool'), USAGE_EXIT)
    .description('Hands out isolated, pre-started sandboxes.')
    .version(version())
    .enablePositionalOptions()
    .addHelpText('after', EXAMPLES);
  const commands = [
    serveLeaf(action), runLeaf(action), execLeaf(action), shellLeaf(action), sandboxesGroup(serviceAction), poolsGroup(serviceAction), stopLeaf(action),
  ];
  for (const command of commands) root.addCommand(command);
  const output = { writeOut: (text: string) => void stdout.write(text), writeErr: (text: string) => void stderr.write(text) };
  for (const command of withMembers(root)) command.configureOutput(output);
  return root;
};

const EXAMPLES = `
Examples:
  $ sandpool run -- uname -a
  $ sandpool shell
  $ sandpool sandboxes list
  $ sandpool COMMAND --help
`;

const withMembers = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(withMembers)];

const version = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';
};


import { Command } from 'commander';
import type { Action, Actions, ServiceAction } from './common/action.ts';
import { COMMANDS, type CommandEntry } from './command-table.ts';
import type { ConnectionOptions } from './common/connection.ts';
import { type CliContext, print, say } from './common/context.ts';
import { explain } from './common/failure.ts';
import { USAGE_EXIT, UsageEnd, withUsageExit } from './common/leaf.ts';
import { build, version } from '../daemon/process/version.ts';

const FAILED = 1;

/** Returns the exit code. Never rejects. */
export const runCommandLine = async (
  argv: readonly string[],
  context: CliContext,
): Promise<number> => {
  let exitCode = 0;
  const action: Action =
    (failureExit, work) =>
    async (...args) => {
      const [options, operands] = [args.at(-2), args.slice(0, -2)];
      try {
        exitCode = await work(context, operands, options as Parameters<typeof work>[2]);
      } catch (error) {
        await say(context, ...explain(error));
        exitCode = failureExit;
      }
    };
  const serviceAction: ServiceAction = (work) =>
    action(FAILED, async (_context, operands, options) => {
      const { connect } = await import('./common/connection.ts');
      const api = await connect(options as ConnectionOptions, context);
      try {
        await work({ api, context }, operands, options as Parameters<typeof work>[2]);
        return 0;
      } finally {
        api.close();
      }
    });
  try {
    if (argv[0] === '__complete')
      return await answerCompletion(
        argv.slice(argv[1] === '--' ? 2 : 1),
        { action, serviceAction },
        context,
      );
    await (
      await program(argv, { action, serviceAction }, context)
    ).parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof UsageEnd) return error.exitCode;
    await say(context, ...explain(error));
    return FAILED;
  }
};

/** Called by a shell at a TAB; see completion/scripts.ts. */
const answerCompletion = async (
  words: readonly string[],
  actions: Actions,
  context: CliContext,
): Promise<number> => {
  const { complete } = await import('./completion/complete.ts');
  const { liveNames } = await import('./completion/live-names.ts');
  const { candidates, files, noSpace } = await complete(
    await program(words, actions, context),
    words,
    liveNames(words, context),
  );
  const lines = candidates.map(({ word, about = '' }) =>
    `${word}\t${about}`.replace(/[^\P{Cc}\t]/gu, ' '),
  );
  await print(
    context.stdout,
    [...(files ? [':files'] : []), ...(noSpace ? [':nospace'] : []), ...lines]
      .map((line) => `${line}\n`)
      .join(''),
  );
  return 0;
};

/** Loads the named commands, and only summaries of the others. */
export const program = async (
  argv: readonly string[],
  actions: Actions,
  { stdout, stderr }: Pick<CliContext, 'stdout' | 'stderr'>,
): Promise<Command> => {
  const root = withUsageExit(new Command('sandpool'), USAGE_EXIT)
    .description('Hands out isolated, pre-started sandboxes.')
    .version(`${version()} (${build().date})`)
    .enablePositionalOptions()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText('after', EXAMPLES);
  const named = argv.slice(0, 2); // in `help run` the command is the second word
  for (const entry of COMMANDS)
    root.addCommand(named.includes(entry.name) ? await entry.load(actions) : outlineOf(entry));
  const output = {
    writeOut: (text: string) => void stdout.write(text),
    writeErr: (text: string) => void stderr.write(text),
  };
  for (const command of withMembers(root)) command.configureOutput(output);
  return root;
};

const outlineOf = ({ name, summary }: CommandEntry): Command => new Command(name).summary(summary);

const EXAMPLES = `
Examples:
  $ sandpool run -- uname -a
  $ sandpool shell
  $ sandpool sandboxes list
  $ sandpool COMMAND --help
`;

const withMembers = (command: Command): readonly Command[] => [
  command,
  ...command.commands.flatMap(withMembers),
];

import { Command, CommanderError } from 'commander';

/**
 * The command line was wrong, or asked only for help or the version. The message is printed
 * already.
 */
export class UsageEnd extends Error {
  override readonly name = 'UsageEnd';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('usage');
    this.exitCode = exitCode;
  }
}

/** Exit code of a wrong command line. */
export const USAGE_EXIT = 2;
/**
 * Exit code of `run`, `exec` and `shell` if Sandpool itself failed. Their other codes are the
 * command's own.
 */
export const SANDPOOL_FAILED = 125;

export interface LeafOptions {
  /** `NAME` and the arguments, as commander writes them. */
  readonly usage: string;
  readonly summary: string;
  /** Shell lines without a prompt. */
  readonly examples: readonly string[];
  /** Exit code of a wrong command line; 2 by default. */
  readonly usageExit?: number;
}

/** Creates a command without an action, with examples in its help. */
export const leaf = ({
  usage,
  summary,
  examples,
  usageExit = USAGE_EXIT,
}: LeafOptions): Command => {
  const [name = '', ...operands] = usage.split(' ');
  const command = new Command(name)
    .summary((summary.split(/[.;] /, 1)[0] ?? '').replace(/\.$/, ''))
    .description(summary)
    .showHelpAfterError('(--help shows the commands and options)');
  for (const operand of operands) command.argument(operand);
  return withUsageExit(command, usageExit).addHelpText(
    'after',
    `\nExamples:\n${examples.map((line) => `  $ ${line}\n`).join('')}`,
  );
};

/** Creates a command that only groups other commands. */
export const group = (name: string, summary: string, members: readonly Command[]): Command => {
  const command = withUsageExit(new Command(name).description(summary), USAGE_EXIT);
  for (const member of members) command.addCommand(member);
  return command;
};

export const withUsageExit = (command: Command, usageExit: number): Command =>
  command.exitOverride((error: CommanderError) => {
    throw new UsageEnd(error.exitCode === 0 ? 0 : usageExit);
  });

import { Command, CommanderError } from 'commander';

/**
 * The command line was wrong, or only help or the version was asked for; what there is to say has
 * been said.
 */
export class UsageEnd extends Error {
  override readonly name = 'UsageEnd';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('usage');
    this.exitCode = exitCode;
  }
}

/** For a wrong command line. */
export const USAGE_EXIT = 2;
/**
 * For `run`, `exec` and `shell`, whose other codes are the command's own: Sandpool itself failed.
 */
export const SANDPOOL_FAILED = 125;

export interface LeafOptions {
  /** `NAME` and what follows it, as commander writes arguments. */
  readonly usage: string;
  readonly summary: string;
  /** Lines of a shell, without their prompt. */
  readonly examples: readonly string[];
  /** The exit code for a wrong command line; 2 unless told. */
  readonly usageExit?: number;
}

/** A command without its action, with examples in its help. */
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
    .showHelpAfterError('(--help shows what there is)');
  for (const operand of operands) command.argument(operand);
  return withUsageExit(command, usageExit).addHelpText(
    'after',
    `\nExamples:\n${examples.map((line) => `  $ ${line}\n`).join('')}`,
  );
};

/** A name under which other commands stand. */
export const group = (name: string, summary: string, members: readonly Command[]): Command => {
  const command = withUsageExit(new Command(name).description(summary), USAGE_EXIT);
  for (const member of members) command.addCommand(member);
  return command;
};

export const withUsageExit = (command: Command, usageExit: number): Command =>
  command.exitOverride((error: CommanderError) => {
    throw new UsageEnd(error.exitCode === 0 ? 0 : usageExit);
  });

import { Command, CommanderError } from 'commander';

/** The message is printed already. */
export class UsageEnd extends Error {
  override readonly name = 'UsageEnd';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('usage');
    this.exitCode = exitCode;
  }
}

export const USAGE_EXIT = 2;
/** Exit code of `run`, `exec` and `shell` if Sandpool itself failed. */
export const SANDPOOL_FAILED = 125;

export interface LeafOptions {
  readonly usage: string;
  readonly summary: string;
  /** Without a prompt. */
  readonly examples: readonly string[];
  /** 2 by default. */
  readonly usageExit?: number;
}

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

export const group = (name: string, summary: string, members: readonly Command[]): Command => {
  const command = withUsageExit(new Command(name).description(summary), USAGE_EXIT);
  for (const member of members) command.addCommand(member);
  return command;
};

export const withUsageExit = (command: Command, usageExit: number): Command =>
  command.exitOverride((error: CommanderError) => {
    throw new UsageEnd(error.exitCode === 0 ? 0 : usageExit);
  });

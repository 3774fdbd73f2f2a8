import { type Command, Option } from 'commander';
import type { Page } from '../client/wire.ts';
import { type CliContext, print, say } from './context.ts';

export type OutputForm = 'table' | 'wide' | 'json' | 'yaml';

export interface OutputOptions {
  readonly output: OutputForm;
}

/** What a command answers: the service's own words, and a text for people; `wide` asks for more columns. */
export interface Shown {
  readonly value: unknown;
  readonly text: (wide: boolean) => string;
}

export const addOutputOption = (command: Command): Command =>
  command.addOption(new Option('-o, --output <form>', 'the form of what is printed').choices(['table', 'wide', 'json', 'yaml']).default('table'));

export const show = async ({ stdout }: CliContext, { output }: OutputOptions, shown: Shown): Promise<void> => {
  await print(stdout, await textOf(output, shown));
};

/** Says so where a list has more than was shown. */
export const sayIfMore = async (context: CliContext, { items, total, offset }: Page<unknown>): Promise<void> => {
  if (offset + items.length < total) await say(context, `${items.length} of ${total} shown; --limit and --offset show others`);
};

const textOf = async (form: OutputForm, { value, text }: Shown): Promise<string> => {
  if (form === 'json') return `${JSON.stringify(value, undefined, 2)}\n`;
  if (form !== 'yaml') return text(form === 'wide');
  const { stringify } = await import('yaml');
  return stringify(value, { lineWidth: 0 });
};

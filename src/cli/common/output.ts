import { type Command, Option } from 'commander';
import { type CliContext, print } from './context.ts';

export type OutputForm = 'table' | 'wide' | 'json' | 'yaml';

export interface OutputOptions {
  readonly output: OutputForm;
}

/** The service's answer, and a text for people. `wide` adds columns. */
export interface Shown {
  readonly value: unknown;
  readonly text: (wide: boolean) => string;
}

export const addOutputOption = (command: Command): Command =>
  command.addOption(
    new Option('-o, --output <form>', 'output format')
      .choices(['table', 'wide', 'json', 'yaml'])
      .default('table'),
  );

export const show = async (
  { stdout }: CliContext,
  { output }: OutputOptions,
  shown: Shown,
): Promise<void> => {
  await print(stdout, await textOf(output, shown));
};

const textOf = async (form: OutputForm, { value, text }: Shown): Promise<string> => {
  if (form === 'json') return `${JSON.stringify(value, undefined, 2)}\n`;
  if (form !== 'yaml') return text(form === 'wide');
  const { stringify } = await import('yaml');
  return stringify(value, { lineWidth: 0 });
};

import type { Command } from 'commander';
import type { Page } from '../client/wire.ts';
import { wholeNumber } from './arguments.ts';
import { type CliContext, say } from './context.ts';
import { type OutputOptions, show } from './output.ts';

export interface PageOptions extends OutputOptions {
  readonly limit?: number;
  readonly offset?: number;
}

export const addPageOptions = (command: Command): Command =>
  command
    .option('--limit <n>', 'maximum number, 20 by default', wholeNumber(1, 1_000))
    .option('--offset <n>', 'number of first items to skip', wholeNumber(0, 999_999_999));

/** Prints a notice if the list has more than this page. */
export const showPage = async <T>(
  context: CliContext,
  options: OutputOptions,
  {
    page,
    table,
  }: { readonly page: Page<T>; readonly table: (items: readonly T[], wide: boolean) => string },
): Promise<void> => {
  await show(context, options, { value: page, text: (wide) => table(page.items, wide) });
  const { items, total, offset } = page;
  if (offset + items.length < total)
    await say(
      context,
      `${items.length} of ${total} shown; see the others with --limit and --offset`,
    );
};

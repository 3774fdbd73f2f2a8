import type { CliContext } from '../common/context.ts';
import { printable } from '../common/printable.ts';

const MOST_NAMED = 10;

/** Files that a copy skipped: the first ten by name, the others as a number. */
export class LeftOut {
  readonly #named: string[] = [];
  #others = 0;

  add(path: string, why: string): void {
    if (this.#named.length < MOST_NAMED) this.#named.push(`${path}, which ${why}`);
    else this.#others += 1;
  }

  tell({ stderr }: Pick<CliContext, 'stderr'>): void {
    for (const text of this.#named) stderr.write(`sandpool: skipped ${printable(text)}\n`);
    if (this.#others > 0) stderr.write(`sandpool: skipped ${this.#others} more\n`);
  }
}

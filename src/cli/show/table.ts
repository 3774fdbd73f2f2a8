import { printable } from '../common/printable.ts';

/**
 * Formats rows under a heading, in columns two spaces apart. Replaces control characters by `?`,
 * since the content may come from other tenants.
 */
export const table = (heading: readonly string[], rows: readonly (readonly string[])[]): string =>
  aligned([heading, ...rows]);

/** Formats one `name: value` a line, and skips empty values. */
export const fields = (
  pairs: readonly (readonly [string, string | number | undefined])[],
): string =>
  aligned(
    pairs.flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[`${name}:`, String(value)]],
    ),
  );

const aligned = (rows: readonly (readonly string[])[]): string => {
  const shown = rows.map((row) => row.map(printable));
  const widths: number[] = [];
  for (const row of shown)
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  return shown
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
};

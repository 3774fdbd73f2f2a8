import { printable } from '../common/printable.ts';

/**
 * Columns are two spaces apart. Replaces control characters, since other tenants may have written
 * the content.
 */
export const table = (heading: readonly string[], rows: readonly (readonly string[])[]): string =>
  aligned([heading, ...rows]);

/** Skips empty values. */
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

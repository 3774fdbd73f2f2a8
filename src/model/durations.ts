/** Durations as text, Go style (`90s`, `1h30m`, `1.5h`); in code always whole milliseconds. */

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
/** For JSON Schema; `parseDuration` checks the bounds. */
export const DURATION_PATTERN = '^(0|(\\d{1,9}(\\.\\d{1,6})?(ms|s|m|h))+)$';
const WHOLE = /^(\d{1,9}(\.\d{1,6})?(ms|s|m|h))+$/;
const PART = /(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h)/g;

/** Ten years. */
export const MAX_DURATION_MS = 10 * 365 * 24 * 3_600_000;

/** Undefined if the text is not a duration, or is too long. */
export const parseDuration = (text: string): number | undefined => {
  if (text === '0') return 0;
  if (text.length > 64 || !WHOLE.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(PART))
    total += Number(amount) * (UNITS[unit ?? ''] ?? Number.NaN);
  return total <= MAX_DURATION_MS ? Math.round(total) : undefined;
};

/** The shortest exact text: `90s` becomes `1m30s`. */
export const formatDuration = (milliseconds: number): string => {
  if (milliseconds === 0) return '0s';
  let rest = milliseconds;
  let text = '';
  for (const [unit, size] of [
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
    ['ms', 1],
  ] as const) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
};

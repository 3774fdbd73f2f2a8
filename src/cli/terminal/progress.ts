import type { CliContext } from '../common/context.ts';
import { printable } from '../common/printable.ts';

/** One line on standard error, if that is a terminal. */
export interface Progress {
  /** At most ten times a second. */
  readonly tell: (text: string) => void;
  readonly end: () => void;
}

const EVERY_MS = 100;
const CLEAR_LINE = '\r\x1b[K';

export const progressOn = ({ stderr }: CliContext): Progress => {
  if (!stderr.isTTY) return { tell: () => {}, end: () => {} };
  let last = 0;
  let shown = false;
  return {
    tell: (text) => {
      const now = performance.now();
      if (shown && now - last < EVERY_MS) return;
      last = now;
      shown = true;
      const width = Math.max(1, (stderr.columns ?? 80) - 1);
      stderr.write(`${CLEAR_LINE}${printable(text).slice(0, width)}`);
    },
    end: () => {
      if (shown) stderr.write(CLEAR_LINE);
      shown = false;
    },
  };
};

/** Only the first part if the total is unknown. */
export const byteProgress = (done: number, whole: number | undefined): string =>
  whole === undefined || whole === 0
    ? bytes(done)
    : `${bytes(done)} of ${bytes(whole)}, ${Math.min(100, Math.floor((done / whole) * 100))} %`;

export const bytes = (count: number): string => {
  const [unit, size] =
    count >= 2 ** 30 ? ['GiB', 2 ** 30] : count >= 2 ** 20 ? ['MiB', 2 ** 20] : ['KiB', 2 ** 10];
  return count < 1_024 ? `${count} B` : `${(count / Number(size)).toFixed(1)} ${String(unit)}`;
};

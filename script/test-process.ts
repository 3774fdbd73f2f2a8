/**
 * Tests write to their own folder. tsx keeps compiled files in the machine's, for all suites and
 * later runs.
 */
const own = process.env['TEST_TMPDIR'];
if (own !== undefined) process.env['TMPDIR'] = own;

/** Keep a process alive beyond the run's wait for its end. */
const LONG_MS = 10_000;
const begun = new Map<NodeJS.Timeout, string>();

/** With the place where each began. */
export const longTimers = (): readonly string[] =>
  [...begun].flatMap(([timer, where]) => (timer.hasRef() ? [where] : []));

const { setTimeout: begin, clearTimeout: end } = globalThis;
globalThis.setTimeout = Object.assign(
  (act: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): NodeJS.Timeout => {
    if (ms === undefined || ms < LONG_MS) return begin(act, ms, ...args);
    const timer = begin(() => {
      begun.delete(timer);
      act(...args);
    }, ms);
    begun.set(timer, `timer of ${ms} ms ${new Error().stack?.split('\n', 5).slice(2).join(' ')}`);
    return timer;
  },
  begin,
);
globalThis.clearTimeout = (timer) => {
  begun.delete(timer as NodeJS.Timeout);
  end(timer);
};

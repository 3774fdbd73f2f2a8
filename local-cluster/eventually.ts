import { inspect } from 'node:util';

const POLL_MS = 10;
/** What was looked at for so long is looked at less often: each look may be a process, or a request. */
const LONG_MS = 1_000;
const LONGEST_POLL_MS = 100;
/**
 * Milliseconds after which a fact that a test waits for never comes. The one deadline of every wait
 * in tests: far longer than any machine needs, so that no deadline measures the machine.
 */
export const NEVER_COMES_MS = 120_000;
/** What needs no I/O has mostly come about by then. */
const QUICK_LOOKS = 5;

/**
 * Waits for a fact that nothing announces: looks again and again. Rejects after NEVER_COMES_MS with
 * `what`, and with what the last look saw: its answer, its error, or what `seen` returns. A look
 * that is not a promise is repeated on the next turns of the event loop first.
 */
export const eventually = async (
  isSo: () => boolean | undefined | Promise<boolean | undefined>,
  what: string,
  seen?: () => unknown,
): Promise<void> => {
  const began = performance.now();
  for (let looks = 0; ; looks += 1) {
    const look = isSo();
    if (await look) return;
    const waited = performance.now() - began;
    if (waited > NEVER_COMES_MS) throw new Error(neverCame(what, looks, seen));
    if (typeof look === 'object') await aWhile(waited);
    else await (looks < QUICK_LOOKS ? aTurn() : aWhile(0));
  }
};

const neverCame = (what: string, looks: number, seen?: () => unknown): string =>
  (seen === undefined ? `waited for: ${what}; saw: not so` : waitedFor(what, seen())) +
  ` (${looks + 1} looks in ${NEVER_COMES_MS / 1_000} s)`;

/** The message of an error: what never came, and what was seen instead. */
export const waitedFor = (what: string, seen: unknown): string =>
  `waited for: ${what}; saw: ${shown(seen)}`;

const shown = (value: unknown): string =>
  inspect(value, { depth: 6, breakLength: Infinity, maxArrayLength: 20, maxStringLength: 1_000 });

const aTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const aWhile = (waitedMs: number): Promise<void> =>
  new Promise((resolve) => {
    const pauseMs = waitedMs < LONG_MS ? POLL_MS : waitedMs / 20;
    setTimeout(resolve, Math.min(pauseMs, LONGEST_POLL_MS));
  });

import { inspect } from 'node:util';

const POLL_MS = 10;
/** Each look may be a process, or a request. */
const LONG_MS = 1_000;
const LONGEST_POLL_MS = 100;
/**
 * The one deadline of every wait in tests: far longer than any machine needs, so that no deadline
 * measures the machine.
 */
export const NEVER_COMES_MS = 120_000;
/** Without I/O, most facts have come by then. */
const QUICK_LOOKS = 5;

/**
 * For a fact that nothing announces. Rejects after NEVER_COMES_MS with `what`, and with the last
 * answer or error, or what `seen` returns. A look without a promise is first repeated on the next
 * turns of the event loop.
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

const POLL_MS = 10;
/** What was looked at for so long is looked at less often: each look may be a process, or a request. */
const LONG_MS = 1_000;
const LONGEST_POLL_MS = 25;
const PATIENCE_MS = 30_000;
/** What needs no I/O has mostly come about by then. */
const QUICK_LOOKS = 5;

/**
 * Waits for a fact that nothing announces: asks again and again, and rejects with `what` past the
 * deadline. A look that is no promise is repeated on the next turns of the event loop first.
 */
export const eventually = async (
  isSo: () => boolean | Promise<boolean>,
  what: string,
  patienceMs = PATIENCE_MS,
): Promise<void> => {
  const began = performance.now();
  for (let looks = 0; ; looks += 1) {
    const look = isSo();
    if (await look) return;
    const waited = performance.now() - began;
    if (waited > patienceMs) throw new Error(`not within ${patienceMs} ms: ${what}`);
    if (typeof look !== 'boolean') await aWhile(waited);
    else await (looks < QUICK_LOOKS ? aTurn() : aWhile(0));
  }
};

const aTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const aWhile = (waitedMs: number): Promise<void> =>
  new Promise((resolve) => {
    const pauseMs = waitedMs < LONG_MS ? POLL_MS : waitedMs / 20;
    setTimeout(resolve, Math.min(pauseMs, LONGEST_POLL_MS));
  });

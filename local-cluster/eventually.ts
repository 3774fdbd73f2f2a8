const POLL_MS = 10;
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
  const deadline = performance.now() + patienceMs;
  for (let looks = 0; ; looks += 1) {
    const look = isSo();
    if (await look) return;
    if (performance.now() > deadline) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await (typeof look === 'boolean' && looks < QUICK_LOOKS ? aTurn() : aWhile());
  }
};

const aTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const aWhile = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, POLL_MS));

const POLL_MS = 10;
const PATIENCE_MS = 20_000;

/**
 * Waits for a fact that nothing announces: asks again and again, and rejects with `what` past the
 * deadline.
 */
export const eventually = async (
  isSo: () => boolean | Promise<boolean>,
  what: string,
  patienceMs = PATIENCE_MS,
): Promise<void> => {
  const deadline = performance.now() + patienceMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

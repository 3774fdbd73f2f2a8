/**
 * Timers are late by up to a millisecond or two: the rest of a wait is spent looking at the clock.
 */
const TIMER_SLACK_MS = 2;

/** Resolves at a moment of performance.now(). */
export const until = async (moment: number): Promise<void> => {
  const early = moment - performance.now() - TIMER_SLACK_MS;
  if (early > 0)
    await new Promise((resolve) => {
      setTimeout(resolve, early);
    });
  while (performance.now() < moment)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
};

/** Timers are late by a millisecond or two, so the rest of a wait looks at the clock. */
const TIMER_SLACK_MS = 2;

/** As performance.now(). */
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

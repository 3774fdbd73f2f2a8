import type { Clock } from '../contracts/clock.ts';

/** The machine's monotonic clock, set by the wall clock once, when the process started. Whole milliseconds. A moment waited for doesn't keep the process alive. */
export const systemClock = (): Clock => {
  const now = (): number => Math.floor(performance.timeOrigin + performance.now());
  const at = (moment: number, due: () => void): (() => void) => {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      timer = setTimeout(ring, Math.min(Math.max(moment - now(), 0), LONGEST_TIMER_MS)).unref();
    };
    // Timers may fire a little early, and hold no more than 24.8 days.
    const ring = (): void => {
      if (now() >= moment) due();
      else arm();
    };
    arm();
    return () => { clearTimeout(timer); };
  };
  return { now, at };
};

/** What a Node timer holds; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Calls `then` after `ms`, but reads arrived data first: after a stall (SIGSTOP, a paused VM, a
 * small CPU quota), Node runs its timers before it reads its pipes. Returns a function that cancels
 * the call.
 */
export const afterReading = (ms: number, then: () => void): (() => void) => {
  let soon: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    soon = setImmediate(then);
  }, ms);
  return () => {
    clearTimeout(timer);
    if (soon) clearImmediate(soon);
  };
};

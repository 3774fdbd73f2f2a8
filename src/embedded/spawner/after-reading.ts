/**
 * Calls `then` after `ms`, but first lets the event loop read arrived data. Otherwise a deadline
 * could miss an end or output that came in time.
 *
 * A user can stall the spawner by SIGSTOP, a paused VM, a small CPU quota or a hung disk. After a
 * stall, Node runs its timers before it reads its pipes. Returns a function that cancels the call.
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

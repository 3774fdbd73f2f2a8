/**
 * Calls `then` after `ms`, but first lets the event loop read what has arrived. For deadlines that
 * would otherwise lose an end or output that came in time: a user can stall the spawner by SIGSTOP,
 * a paused VM or container, a small cpu quota of its cgroup, or a hung disk. After a stall, Node
 * runs its timers before it reads its pipes. Returns a function that cancels the call.
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

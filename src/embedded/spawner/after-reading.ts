/**
 * Calls `then` after `ms`, and not before what had come by then has been read: where this process
 * stood still, its timers are due before it looks at its pipes. Returns what takes that back.
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

/** Records that are written at one time. */
export const AT_ONCE = 16;

/** Does something to each, to some at a time. */
export const inParts = async <T>(
  items: readonly T[],
  each: (item: T) => Promise<void>,
): Promise<void> => {
  for (let next = 0; next < items.length; next += AT_ONCE)
    await Promise.all(items.slice(next, next + AT_ONCE).map(each));
};

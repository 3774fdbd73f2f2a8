/** Does the work for 0 to `count` - 1, so many at one time. */
export const inParallel = async (
  count: number,
  width: number,
  work: (n: number) => Promise<void>,
): Promise<void> => {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(count, width) }, async () => {
      for (let n = next++; n < count; n = next++) await work(n);
    }),
  );
};

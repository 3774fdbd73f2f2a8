/** So few that each call is answered within its second by a Redis of a busy machine. */
const FEW = 50;

/** Makes so many calls, by their numbers, and some of them at once; the answers are in their order. */
export const fewAtOnce = async <T>(
  times: number,
  call: (n: number) => Promise<T>,
): Promise<readonly T[]> => {
  const answers: T[] = [];
  while (answers.length < times) {
    const from = answers.length;
    const count = Math.min(FEW, times - from);
    answers.push(...(await Promise.all(Array.from({ length: count }, (_, n) => call(from + n)))));
  }
  return answers;
};

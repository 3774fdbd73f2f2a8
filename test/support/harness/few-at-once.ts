/** A busy Redis still answers each within a second. */
const FEW = 50;

/** Answers are in the order of the numbers. */
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

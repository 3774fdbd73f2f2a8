import { eventually } from './eventually.ts';
import type { HttpAnswer } from './http-client.ts';

/**
 * Repeats what is refused for a moment, such as a template that is not known yet or a usage that is
 * counted; resolves with the answer of this status.
 */
export const untilAnswered = async (
  status: number,
  ask: () => Promise<HttpAnswer>,
): Promise<HttpAnswer> => {
  let answer: HttpAnswer | undefined;
  await eventually(
    async () => (answer = await ask()).status === status,
    `an answer of ${status}`,
    () => `${answer?.status} ${answer?.text}`,
  );
  if (!answer) throw new Error('nothing was asked');
  return answer;
};

import { eventually } from './eventually.ts';
import type { HttpAnswer } from './http-client.ts';

/** Retries temporary refusals, such as of a template that is not known yet, until this status. */
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

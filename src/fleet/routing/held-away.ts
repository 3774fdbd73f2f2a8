import {
  answerOnce,
  fingerprintOf,
  type IdempotencyDeps,
  type WrittenAnswer,
} from '../../http/corridor/idempotency.ts';
import { written } from '../../http/corridor/answer-writing.ts';
import { markedPathOf, type Marked } from '../../http/corridor/marked-answer.ts';
import { passAway, type WorkAway } from '../../http/corridor/pass.ts';
import type { Answer, Route } from '../../http/corridor/route.ts';
import { PassedBody } from './passed-answer.ts';

/**
 * Has another cluster carry out what a rule holds, once under its key: repetitions get the first
 * answer, which is kept here, and need no approval.
 */
export const answerHeldAway = async (
  row: Pick<Route, 'method'>,
  deps: IdempotencyDeps,
  { context, request, caller, key, bytes, pass }: Omit<Marked, 'perform'>,
  work: WorkAway,
): Promise<Answer> => {
  const path = markedPathOf({ context, request, key, pass });
  const mark = fingerprintOf(caller, {
    method: row.method,
    path: `${path} elsewhere`, // it may be this cluster's to carry out, under the key itself
    key,
    body: bytes,
  });
  let given: Answer | undefined;
  const marked = await answerOnce(deps, {
    mark,
    caller,
    credential: String(context.req.headers['service-api-key']),
    opensItself: false,
    earlier: undefined,
    pendingOutcome: () => undefined,
    carryOut: async () => {
      given = await passAway(pass, work);
      return given.body instanceof PassedBody ? NOT_KEPT : { ...written(given), secret: true };
    },
    settle: async () => {
      if (!given || given.status < 400) await pass.settle();
    },
  });
  const { status, headers, text } = marked;
  return given ?? { status, headers, body: JSON.parse(text) as object };
};

const NOT_KEPT: WrittenAnswer = { status: 500, headers: {}, text: '', secret: false };

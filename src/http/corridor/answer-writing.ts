import type { AnswerRoom, AnswerBudget } from '../../actors/sandbox/commands/answer-budget.ts';
import type { Context } from '../reply/context.ts';
import { namesView } from './entity-tag.ts';
import type { WrittenAnswer } from './idempotency.ts';
import { LONG_BYTES, LongAnswer } from '../reply/long-answer.ts';
import { PlainText } from '../reply/plain-text.ts';
import type { Answer } from './route.ts';
import type { UnreadAnswers } from '../reply/unread-answers.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';

/** Says which view this is; a GET that knows it already gets no body. */
export const tagView = (context: Context, tag: string): void => {
  context.set('ETag', tag);
  if (
    (context.method !== 'GET' && context.method !== 'HEAD') ||
    !namesView(context.req.headers['if-none-match'], tag)
  )
    return;
  context.body = null;
  context.status = 304;
  context.remove('Content-Type');
};

interface TextAnswer {
  readonly status: number;
  readonly headers: Answer['headers'];
  readonly text: string;
}

export const give = (
  context: Context,
  { status, headers, text }: TextAnswer,
  room: () => AnswerRoom,
): void => {
  count(context, Buffer.byteLength(text), room);
  context.status = status;
  for (const name in headers) context.set(name, headers[name] ?? '');
  context.set('Content-Type', 'application/json; charset=utf-8');
  context.body = text;
};

/** Takes room for a long answer; refuses none where something may have been done. */
const count = ({ method }: Context, bytes: number, room: () => AnswerRoom): void => {
  if (bytes <= LONG_BYTES) return;
  if (method === 'GET' || method === 'HEAD') room().hold(bytes);
  else room().owe(bytes);
};

/** Most listeners of a response, to which what is piped into it listens too: above Node's 10. */
const PIPED_LISTENERS = 20;

/** The operation that made it has taken room for it. */
export const givePieces = (
  context: Context,
  { status, headers, body }: Answer & { readonly body: LongAnswer },
  unread: UnreadAnswers,
): void => {
  context.status = status;
  for (const name in headers) context.set(name, headers[name] ?? '');
  context.set('Content-Type', 'application/json; charset=utf-8');
  context.res.setMaxListeners(PIPED_LISTENERS);
  context.body = body.stream();
  unread.watch(context.res);
};

export const givePlainly = (
  context: Context,
  { bytes, mediaType }: PlainText,
  room: () => AnswerRoom,
): void => {
  count(context, bytes.length, room);
  context.status = 200;
  context.set('Content-Type', `${mediaType}; charset=utf-8`);
  // What a tenant printed is never taken for a page.
  context.set('X-Content-Type-Options', 'nosniff');
  context.body = bytes;
};

export const written = ({ status, body, headers = {}, secret = false }: Answer): WrittenAnswer => ({
  status,
  headers,
  text: JSON.stringify(body),
  secret,
});

/**
 * Returns what gives a request its room in the budget for answers: none is taken before it is asked
 * for, and all is given back when the response is over.
 */
export const roomOf = (
  { res }: Pick<Context, 'res'>,
  answers: AnswerBudget,
  caller: Caller | undefined,
): (() => AnswerRoom) => {
  let room: AnswerRoom | undefined;
  return () => {
    if (room) return room;
    const taken = (room = answers.room(caller ? tenantKey(caller) : ''));
    if (res.destroyed) taken.release();
    else
      res.once('close', () => {
        taken.release();
      });
    return taken;
  };
};

import type { AnswerRoom } from '../../../actors/sandbox/commands/answer-budget.ts';
import type { Context } from '../../reply/context.ts';
import { EventStream, type EventStreams } from '../../reply/event-streams.ts';
import { LONG_BYTES, LongAnswer } from '../../reply/long-answer.ts';
import { PlainText } from '../../reply/plain-text.ts';
import { StreamedAnswer } from '../../reply/streamed-answer.ts';
import type { Admission } from '../../limits/admission.ts';
import type { Clients } from '../../limits/clients.ts';
import type { UnreadAnswers } from '../../limits/memory.ts';
import { entityTag, namesView } from '../entity-tag.ts';
import type { Answer } from '../route.ts';
import type { Exchange, Stage } from './exchange.ts';

interface ReplyDeps {
  readonly clients: Pick<Clients, 'followKey'>;
  readonly streams: EventStreams;
  readonly admission: Pick<Admission, 'unread'>;
}

/** Writes the answer that the stages after it found: as JSON, text, pieces or a stream. */
export const reply =
  (deps: ReplyDeps): Stage =>
  async (exchange, next) => {
    await next();
    const { context, kept, answer } = exchange;
    if (kept) return give(context, kept, exchange.request.room);
    if (!answer) return;
    const { body, status, headers, revision } = answer;
    const { room } = exchange.request;
    if (body instanceof EventStream) return openStream(deps, exchange, body);
    if (body instanceof StreamedAnswer)
      return giveStream(context, { ...answer, body }, deps.admission.unread);
    if (body instanceof PlainText) return givePlainly(context, body, room);
    if (body instanceof LongAnswer && body.isLong)
      return givePieces(context, { ...answer, body }, deps.admission.unread);
    const text = JSON.stringify(body);
    give(context, { status, headers, text }, room);
    if (revision !== undefined) tagView(context, entityTag(revision, text));
  };

/** The stream ends with the key that opened it. */
const openStream = (
  { streams, clients }: ReplyDeps,
  { context, caller }: Exchange,
  stream: EventStream,
): void =>
  streams.open(context, stream, (ended) =>
    caller ? clients.followKey(caller, ended) : () => undefined,
  );

interface TextAnswer {
  readonly status: number;
  readonly headers: Answer['headers'];
  readonly text: string;
}

const give = (
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
const givePieces = (
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

const givePlainly = (
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

/** Says which view this is; a GET that knows it already gets no body. */
const tagView = (context: Context, tag: string): void => {
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

/**
 * Sends the content. A failure on its way cuts the connection: the client must not take it for
 * whole.
 */
const giveStream = (
  context: Context,
  { status, headers, body: { content } }: Answer & { readonly body: StreamedAnswer },
  unread: UnreadAnswers,
): void => {
  const { res } = context;
  res.setMaxListeners(PIPED_LISTENERS);
  content.once('error', () => res.destroy());
  if (content.errored) res.destroy();
  res.once('close', () => content.destroy());
  // Neither a tenant's file nor an archive of them is ever taken for a page.
  context.set('X-Content-Type-Options', 'nosniff');
  context.set('Content-Security-Policy', 'sandbox');
  context.body = content;
  if (status === 304) context.body = null;
  context.status = status;
  for (const name in headers) context.set(name, headers[name] ?? '');
  unread.watch(res);
};

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

/** The stream ends when the caller's key does. */
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

/** Never refuses a request that may have had an effect. */
const count = ({ method }: Context, bytes: number, room: () => AnswerRoom): void => {
  if (bytes <= LONG_BYTES) return;
  if (method === 'GET' || method === 'HEAD') room().hold(bytes);
  else room().owe(bytes);
};

/** Piping adds listeners beyond Node's default of 10. */
const PIPED_LISTENERS = 20;

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
  // Browsers must not render a tenant's output as a page.
  context.set('X-Content-Type-Options', 'nosniff');
  context.body = bytes;
};

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

/** Destroys the connection on a failure: the client must not take the content for complete. */
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
  context.set('X-Content-Type-Options', 'nosniff');
  context.set('Content-Security-Policy', 'sandbox');
  context.body = content;
  if (status === 304) context.body = null;
  context.status = status;
  for (const name in headers) context.set(name, headers[name] ?? '');
  unread.watch(res);
};

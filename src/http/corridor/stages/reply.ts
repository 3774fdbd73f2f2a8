import { EventStream, type EventStreams } from '../../reply/event-streams.ts';
import { LongAnswer } from '../../reply/long-answer.ts';
import { PlainText } from '../../reply/plain-text.ts';
import { giveStream, StreamedAnswer } from '../../reply/streamed-answer.ts';
import type { Admission } from '../../limits/admission.ts';
import type { Clients } from '../../limits/clients.ts';
import { give, givePieces, givePlainly, tagView } from '../answer-writing.ts';
import { entityTag } from '../entity-tag.ts';
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

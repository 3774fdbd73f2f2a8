import type { Readable } from 'node:stream';
import type { UnreadAnswers } from './unread-answers.ts';
import type { Context } from './context.ts';

/**
 * The body of an answer that is passed on as it comes, of any length; its headers say what it is.
 */
export class StreamedAnswer {
  readonly content: Readable;

  constructor(content: Readable) {
    this.content = content;
  }
}

export interface StreamedParts {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: StreamedAnswer;
}

/** Most listeners of a response, to which what is piped into it listens too: above Node's 10. */
const PIPED_LISTENERS = 20;

/**
 * Sends the content. A failure on its way cuts the connection: the client must not take it for
 * whole.
 */
export const giveStream = (
  context: Context,
  { status, headers, body: { content } }: StreamedParts,
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

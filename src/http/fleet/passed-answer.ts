import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import type { Context } from '../server/context.ts';
import { errorCodeIn, shownInFleet } from './fleet-names.ts';
import { answeredHeaders } from './passed-headers.ts';
import type { Answer } from '../router/route.ts';

/** The longest answer that is read whole, so that its names can be shown as the fleet's. */
const MOST_READ_BYTES = 1_048_576;

/** Most listeners of a response, to which what is piped into it listens too: above Node's 10. */
const PIPED_LISTENERS = 20;

/** The body of an answer of another cluster, which goes on to the client as it comes. */
export class PassedBody {
  readonly answer: IncomingMessage;

  constructor(answer: IncomingMessage) {
    this.answer = answer;
  }
}

export interface AnsweredTerms {
  readonly clusterId: string;
  /** The URL of this API as the client knows it. */
  readonly base: string;
  readonly row: { readonly path: string };
  readonly context: Context;
}

/**
 * Makes a cluster's answer this one's; a redirect is none, since it would have its client send the
 * key elsewhere. What is short and JSON is read whole; what has no end, is
 * long, or is no JSON is passed on as it comes.
 */
export const answerFrom = async (
  answer: IncomingMessage,
  { clusterId, base, row, context }: AnsweredTerms,
): Promise<Answer> => {
  const status = answer.statusCode ?? 502;
  if (status >= 300 && status < 400 && status !== 304) {
    answer.destroy();
    throw clusterUnavailable(clusterId, 'answered with a redirect, and none is followed');
  }
  const { 'content-length': _length, ...headers } = answeredHeaders(answer);
  const length = Number(answer.headers['content-length'] ?? Number.NaN);
  const isJson = answer.headers['content-type']?.startsWith('application/json') === true;
  if (!isJson || !(length <= MOST_READ_BYTES) || context.method === 'HEAD')
    return { status, headers: answeredHeaders(answer), body: new PassedBody(answer) };
  const body = await readObject(answer, MOST_READ_BYTES).catch(() => {
    throw clusterUnavailable(
      clusterId,
      'gave an answer that breaks off; look before you repeat what changes something',
    );
  });
  const errorCode = status >= 400 ? errorCodeIn(body) : undefined;
  if (errorCode !== undefined) context.state.errorCode = errorCode;
  return {
    status,
    headers,
    body: status < 400 ? shownInFleet(row, body, { clusterId, base: () => base }) : body,
  };
};

/** Rejects where it breaks off, is longer than `mostBytes`, or is no JSON object. */
export const readObject = async (answer: IncomingMessage, mostBytes: number): Promise<object> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new Error('the cluster sent too much');
    chunks.push(chunk);
  }
  const value: unknown = JSON.parse(Buffer.concat(chunks).toString());
  if (typeof value !== 'object' || value === null) throw new Error('the cluster sent no object');
  return value;
};

/** Sends it on, no faster than its client reads; where it breaks off, so does the client's. */
export const givePassed = (
  context: Context,
  { status, headers = {}, body: { answer } }: Answer & { readonly body: PassedBody },
): void => {
  const { res } = context;
  context.status = status;
  context.respond = false;
  res.setMaxListeners(PIPED_LISTENERS);
  res.writeHead(status, headers);
  if (answer.headers['content-length'] === undefined) res.flushHeaders();
  // Whoever ends it first ends both.
  pipeline(answer, res).catch(() => undefined);
};

import type { IncomingMessage } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';
import { decidedThere } from '../../model/approvals/approval-refusals.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import {
  JsonReader,
  boundsOf,
  type InTurn,
  type JsonBounds,
  type LoopShare,
} from '../../lib/streams/json-reader.ts';
import { Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import { flow, type FlowTerms } from '../../http/reply/flow.ts';
import type { Context } from '../../http/reply/context.ts';
import { errorCodeIn, hasOwnContent, shownInFleet } from './fleet-names.ts';
import { answeredHeaders } from './passed-headers.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import { LONG_BYTES } from '../../http/reply/long-answer.ts';

/**
 * Maximum bytes of an answer that is read whole to rewrite its names. The second limit is for
 * requests that may change something: the budget for answers takes their bytes even if full.
 */
const MOST_READ_BYTES = 16 << 20;
const MOST_CHANGED_BYTES = 2 << 20;
const MOST_READ_VALUES = 65_536;
/** Bytes of an item of a page: a sandbox with maximum metadata, or a pool. */
export const ITEM_BYTES = 32 << 10;
/** Maximum bytes of an answer without names that is read whole. */
const MOST_SHORT_BYTES = 1 << 20;

/** An answer whose client has read nothing for this long is cut, like the manager's own. */
const UNREAD_MS = 30_000;

/** Maximum listeners of a response, including its pipes; Node's default is 10. */
const PIPED_LISTENERS = 20;

/** The body of another cluster's answer, which is streamed to the client. */
export class PassedBody {
  readonly answer: IncomingMessage;

  constructor(answer: IncomingMessage) {
    this.answer = answer;
  }
}

export interface ShownTerms {
  readonly clusterId: string;
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The caller of the manager's API. */
  readonly caller: Caller;
  /** URL of this API from the client's side. */
  readonly base: string;
}

/** An API other than the REST API, adapted to the clusters of a manager's fleet. */
export interface SurfaceInFleet {
  /** Prefix of this API's paths at a worker. */
  readonly base: string;
  /** Lower-case names of headers that only the manager may read. */
  readonly secrets: ReadonlySet<string>;
  /** Returns whether this API can name the resources of a cluster. */
  readonly serves: (clusterId: string) => boolean;
  /** Returns the pool or env that a body or a query names, with aliases resolved. */
  readonly poolOf: (asked: unknown) => string | undefined;
  /** Query parameter of a list that names a pool. */
  readonly poolParameter: string;
  /** Returns the cluster that a body or a query names. Refuses a cluster that `serves` excludes. */
  readonly clusterOf: (asked: unknown) => string | undefined;
  /** Wait of a claim in ms, over all its clusters. */
  readonly waitMs: number;
  /** Returns the body with aliases resolved, or with `name` as its pool. */
  readonly claimOf: (body: object, name?: string) => object;
  /** Converts a worker's answer to an answer of this API. Throws a refusal as a Refusal. */
  readonly shown: (body: object, terms: ShownTerms) => object;
  /** Header of a list with the next page's token, which `ClusterReader` returns as `next`. */
  readonly nextHeader: string;
}

export interface AnsweredTerms {
  readonly clusterId: string;
  /** URL of this API from the client's side. */
  readonly base: string;
  readonly row: Pick<Route, 'path' | 'media'>;
  readonly context: Context;
  readonly room: AnyRequest['room'];
  /** Undefined for the REST API. */
  readonly surface: SurfaceInFleet | undefined;
  readonly caller: Caller;
  readonly share: LoopShare;
  /** Requested items of a page; undefined for other answers. */
  readonly limit: number | undefined;
}

/**
 * Converts a cluster's answer to the manager's own. Streams content of a sandbox, such as a file, a
 * command's output or a log. Reads other answers whole, as JSON objects, to rewrite their names.
 * Refuses with CLUSTER_UNAVAILABLE if the answer is malformed, too long or a redirect, which would
 * send the client's key elsewhere. Refuses as AnswerRoom does if its budget is used up.
 */
export const answerFrom = async (
  answer: IncomingMessage,
  { clusterId, base, row, context, room, surface, caller, share, limit }: AnsweredTerms,
): Promise<Answer> => {
  const status = answer.statusCode ?? 502;
  const refusal = (what: string) => {
    answer.destroy();
    return clusterUnavailable(clusterId, what);
  };
  if (status >= 300 && status < 400 && status !== 304)
    throw refusal('answered with a redirect, and none is followed');
  if (context.method === 'HEAD' || status === 204 || status === 304 || isContent(row, answer))
    return { status, headers: answeredHeaders(answer), body: new PassedBody(answer) };
  if (!isJson(answer)) throw refusal(`gave an answer that is no JSON; ${LOOK}`);
  const changes = context.method !== 'GET';
  const read = await readObject(answer, {
    ...readBounds(row, { changes, limit }),
    work: (work) => share.work(clusterId, work),
    takesLists: surface !== undefined,
    took: (bytes) => {
      if (bytes > LONG_BYTES && changes) room().owe(bytes);
      else if (bytes > LONG_BYTES) room().hold(bytes);
    },
  }).catch((error: unknown) => {
    throw error instanceof Refusal
      ? error
      : refusal(`gave an answer that breaks off, is too long or is no object; ${LOOK}`);
  });
  const body = status === 403 ? decidedThere(read, clusterId) : read;
  const retryAfter = answer.headers['retry-after'];
  const shown = surface?.shown(body, { clusterId, status, retryAfter, caller, base });
  const errorCode = status >= 400 ? errorCodeIn(body) : undefined;
  if (errorCode !== undefined) context.state.errorCode = errorCode;
  const { 'content-length': _length, ...headers } = answeredHeaders(answer);
  return {
    status,
    headers,
    body: shown ?? shownInFleet(row, body, { clusterId, base: () => base }),
  };
};

/** Limits a sandbox or a page by its items; a log, an audit or a pool's YAML may be long. */
const readBounds = (
  { path }: Pick<Route, 'path'>,
  { changes, limit }: { readonly changes: boolean; readonly limit: number | undefined },
): JsonBounds => {
  const mostBytes = changes ? MOST_CHANGED_BYTES : MOST_READ_BYTES;
  const bounds = limit === undefined ? boundsOf(0, 0) : boundsOf(limit, ITEM_BYTES);
  return limit !== undefined || OF_SANDBOX.test(path)
    ? { ...bounds, mostBytes: Math.min(mostBytes, bounds.mostBytes) }
    : { mostBytes, mostValues: MOST_READ_VALUES };
};

/** Paths whose answers are about one sandbox. */
const OF_SANDBOX =
  /^\/sandboxes(?:\/[^/]+(?:\/(?:exec-token|state|idle-timeout|timeout|is_ready|pause))?)?$/;

const LOOK = 'look before you repeat what changes something';

/** Returns whether to stream the answer. Refusals are always read. */
const isContent = ({ path, media }: AnsweredTerms['row'], answer: IncomingMessage): boolean => {
  const { statusCode = 0, headers } = answer;
  if (statusCode >= 400) return false;
  if (media?.only !== undefined || (media?.also && !isJson(answer))) return true;
  return (
    hasOwnContent(path) &&
    isJson(answer) &&
    !(Number(headers['content-length'] ?? Number.NaN) <= MOST_SHORT_BYTES)
  );
};

const isJson = ({ headers }: IncomingMessage): boolean =>
  headers['content-type']?.startsWith('application/json') === true;

export interface ReadTerms extends JsonBounds {
  readonly work: InTurn;
  /** Called with the number of buffered bytes. If it throws, the reading ends. */
  readonly took?: (bytes: number) => void;
  /** Accepts arrays as well. */
  readonly takesLists?: boolean;
}

/**
 * Reads a JSON object. Rejects if the answer breaks off, exceeds the bounds, or is not an object.
 */
export const readObject = async (
  answer: IncomingMessage,
  { took, work, takesLists = false, ...bounds }: ReadTerms,
): Promise<object> => {
  const reader = new JsonReader(bounds);
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    await work(() => reader.push(chunk));
    took?.(reader.bytes);
  }
  const value = await reader.value(work);
  if (typeof value !== 'object' || value === null || (Array.isArray(value) && !takesLists))
    throw new Error('the cluster sent no object');
  return value;
};

/** Exceeds the depth of valid answers, yet JSON.stringify can still write such a value. */
const MOST_DEPTH = 256;

/** Returns whether a value of a cluster is nested more deeply than allowed. */
export const isTooDeep = (value: unknown, depth = MOST_DEPTH): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (depth === 0 || Object.values(value).some((each) => isTooDeep(each, depth - 1)));

/** Streams the answer with backpressure. If it breaks off, so does the client's. */
export const givePassed = (
  context: Context,
  { status, headers = {}, body: { answer } }: Answer & { readonly body: PassedBody },
  clock: Clock,
): void => {
  const { res } = context;
  context.status = status;
  context.respond = false;
  res.setMaxListeners(PIPED_LISTENERS);
  res.writeHead(status, headers);
  if (answer.headers['content-length'] === undefined) res.flushHeaders();
  void passTaken(answer, res, { clock, stallMs: UNREAD_MS });
};

/**
 * Pipes a body; resolves when the pipe ends. If either end breaks off, so does the other. Cuts a
 * client that has read nothing of pending data for `stallMs`.
 */
export const passTaken = (
  answer: Readable,
  response: Writable,
  terms: Pick<FlowTerms, 'clock' | 'stallMs'>,
): Promise<void> =>
  new Promise((resolve) => {
    const cut = (): void => void response.destroy();
    flow(answer, response, { ...terms, moved: () => undefined, stalled: cut });
    answer.once('end', () => response.end());
    answer.on('error', cut);
    answer.once('close', () => {
      if (!answer.readableEnded) cut();
    });
    response.on('error', () => answer.destroy());
    response.once('close', () => {
      answer.destroy();
      resolve();
    });
    if (answer.destroyed && !answer.readableEnded) cut();
    if (response.destroyed) {
      answer.destroy();
      resolve();
    }
  });

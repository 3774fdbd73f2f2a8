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
 * An answer up to this size is read whole to rewrite its names. The second limit is for requests
 * that may change something: the budget for answers takes their bytes even if full.
 */
const MOST_READ_BYTES = 16 << 20;
const MOST_CHANGED_BYTES = 2 << 20;
const MOST_READ_VALUES = 65_536;
/** A sandbox with maximum metadata, or a pool. */
export const ITEM_BYTES = 32 << 10;
/** An answer without names that is read whole. */
const MOST_SHORT_BYTES = 1 << 20;

/** A client that has read nothing for this long is cut. */
const UNREAD_MS = 30_000;

/** Includes a response's pipes; Node's default is 10. */
const PIPED_LISTENERS = 20;

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
  readonly caller: Caller;
  readonly base: string;
}

/** An API other than the REST API, adapted to a manager's fleet. */
export interface SurfaceInFleet {
  readonly base: string;
  /** Lower-case names of headers that only the manager may read. */
  readonly secrets: ReadonlySet<string>;
  readonly serves: (clusterId: string) => boolean;
  /** Resolves aliases. */
  readonly poolOf: (asked: unknown) => string | undefined;
  readonly poolParameter: string;
  /** Refuses a cluster that `serves` excludes. */
  readonly clusterOf: (asked: unknown) => string | undefined;
  readonly waitMs: number;
  /** Resolves aliases, or sets `name` as the pool. */
  readonly claimOf: (body: object, name?: string) => object;
  /** Throws a refusal as a Refusal. */
  readonly shown: (body: object, terms: ShownTerms) => object;
  readonly nextHeader: string;
}

export interface AnsweredTerms {
  readonly clusterId: string;
  readonly base: string;
  readonly row: Pick<Route, 'path' | 'media'>;
  readonly context: Context;
  readonly room: AnyRequest['room'];
  /** Undefined for the REST API. */
  readonly surface: SurfaceInFleet | undefined;
  readonly caller: Caller;
  readonly share: LoopShare;
  readonly limit: number | undefined;
}

/**
 * Streams content of a sandbox; reads other answers whole, to rewrite their names. Refuses with
 * CLUSTER_UNAVAILABLE if the answer is malformed, too long or a redirect, which would send the
 * client's key elsewhere. Refuses as AnswerRoom does if its budget is used up.
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
    throw refusal('answered with a redirect, which is not followed');
  if (context.method === 'HEAD' || status === 204 || status === 304 || isContent(row, answer))
    return { status, headers: answeredHeaders(answer), body: new PassedBody(answer) };
  if (!isJson(answer)) throw refusal(`sent an answer that is not JSON; ${LOOK}`);
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
      : refusal(`sent an answer that ends too early, is too long or is not an object; ${LOOK}`);
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

/** A log, an audit or a pool's YAML may be long. */
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

const OF_SANDBOX =
  /^\/sandboxes(?:\/[^/]+(?:\/(?:exec-token|state|idle-timeout|timeout|is_ready|pause))?)?$/;

const LOOK = 'check the result before you repeat a change';

/** Refusals are always read. */
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
  /** If it throws, the reading ends. */
  readonly took?: (bytes: number) => void;
  readonly takesLists?: boolean;
}

/** Rejects if the answer breaks off, exceeds the bounds, or is not an object. */
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
    throw new Error("the cluster's answer is not an object");
  return value;
};

/** Exceeds the depth of valid answers, yet JSON.stringify can still write it. */
const MOST_DEPTH = 256;

export const isTooDeep = (value: unknown, depth = MOST_DEPTH): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (depth === 0 || Object.values(value).some((each) => isTooDeep(each, depth - 1)));

/** If the answer breaks off, so does the client's. */
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
 * Resolves when the pipe ends. If either end breaks off, so does the other. Cuts a client that has
 * read none of the pending data for `stallMs`.
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

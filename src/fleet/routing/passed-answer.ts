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
 * The longest answer that is read whole, so that its names can be shown as the fleet's; and of a
 * request that may change something, whose answer has its room in the budget whether it fits or
 * not.
 */
const MOST_READ_BYTES = 16 << 20;
const MOST_CHANGED_BYTES = 2 << 20;
const MOST_READ_VALUES = 65_536;
/** Bytes of an item of a page: a sandbox with all the metadata that it may have, or a pool. */
export const ITEM_BYTES = 32 << 10;
/** The longest answer without names that is read whole. */
const MOST_SHORT_BYTES = 1 << 20;

/** An answer of which its client takes nothing for so long is cut, as the manager's own are. */
const UNREAD_MS = 30_000;

/** Most listeners of a response, to which what is piped into it listens too: above Node's 10. */
const PIPED_LISTENERS = 20;

/** The body of an answer of another cluster, which goes on to the client as it comes. */
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
  /** Who asked the manager. */
  readonly caller: Caller;
  /** The URL of this API as the client knows it. */
  readonly base: string;
}

/** Describes how a manager speaks an API other than the REST API over the clusters of its fleet. */
export interface SurfaceInFleet {
  /** Stands before the paths of this API at a worker. */
  readonly base: string;
  /** Headers, in small letters, that are for the manager alone. */
  readonly secrets: ReadonlySet<string>;
  /** Whether this API has names for what is on a cluster. */
  readonly serves: (clusterId: string) => boolean;
  /** Returns the pool or env that a body or a query asks for, as it is known by aliases. */
  readonly poolOf: (asked: unknown) => string | undefined;
  /** The parameter of a list's query that names a pool. */
  readonly poolParameter: string;
  /** Returns the cluster that it names. Refuses one that this API has no names for. */
  readonly clusterOf: (asked: unknown) => string | undefined;
  /** How long its claims wait, whichever clusters they are sent to. */
  readonly waitMs: number;
  /** Returns the body with no alias in it; `name` in place of its pool. */
  readonly claimOf: (body: object, name?: string) => object;
  /** Makes what a worker answered this API's. Throws the refusal that it is. */
  readonly shown: (body: object, terms: ShownTerms) => object;
  /** Header of a list that says where it goes on: beside its `items` that is `next`. */
  readonly nextHeader: string;
}

export interface AnsweredTerms {
  readonly clusterId: string;
  /** The URL of this API as the client knows it. */
  readonly base: string;
  readonly row: Pick<Route, 'path' | 'media'>;
  readonly context: Context;
  readonly room: AnyRequest['room'];
  /** Undefined: it is the REST API that was asked. */
  readonly surface: SurfaceInFleet | undefined;
  readonly caller: Caller;
  readonly share: LoopShare;
  /** Items that the client asks for; undefined if it is not a page. */
  readonly limit: number | undefined;
}

/**
 * Makes a cluster's answer this one's. Content of a sandbox's own, such as a file, a command's
 * output or a log, is passed on as it comes; whatever else a row answers is a JSON object, which is
 * read whole so that its names are the fleet's. Refuses with CLUSTER_UNAVAILABLE what is none, is
 * too long or is a redirect, which would have its client send the key elsewhere; and as AnswerRoom
 * does where it has no room.
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

/** A sandbox has an end, and so has a page; a log, an audit or a pool's YAML may be long. */
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

/** The rows that answer one sandbox, or a word about it. */
const OF_SANDBOX =
  /^\/sandboxes(?:\/[^/]+(?:\/(?:exec-token|state|idle-timeout|timeout|is_ready|pause))?)?$/;

const LOOK = 'look before you repeat what changes something';

/** Whether it is passed on as it comes. Refusals never are. */
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
  /** Is told how many bytes of it are held; what it throws ends the reading. */
  readonly took?: (bytes: number) => void;
  /** A list is an answer too. */
  readonly takesLists?: boolean;
}

/** Rejects where it breaks off, is longer or deeper than it may be, or is no JSON object. */
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

/** Deeper than any answer is, and not so deep that it can't be written again. */
const MOST_DEPTH = 256;

/** Whether it is nested more deeply than what a cluster says may be. */
export const isTooDeep = (value: unknown, depth = MOST_DEPTH): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (depth === 0 || Object.values(value).some((each) => isTooDeep(each, depth - 1)));

/** Sends it on, no faster than its client reads; where it breaks off, so does the client's. */
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
 * Passes a body on, and resolves when that is over. Whoever ends it first ends both; so does a
 * client that takes nothing of it for `stallMs`, though not one for which there is nothing.
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

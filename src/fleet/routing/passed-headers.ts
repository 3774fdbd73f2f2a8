import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import {
  CLAIM_KEY_HEADER,
  CLAIM_TERMS_HEADER,
  FLEET_KEY_HEADER,
  IDENTITY_HEADER,
} from '../../model/fleet/identity-header.ts';
import type { WayToCluster } from '../replication/fleet-operations.ts';
import {
  HOP_BY_HOP,
  namedByConnection,
  ORIGIN_WIDE,
  PAGE_POLICY,
} from '../../http/gateway/headers.ts';
import type { Answer } from '../../http/corridor/route.ts';
import { readTarget } from '../../http/gateway/target.ts';

/** Lists what the manager has looked at itself, and what a client must not say to a worker. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'trailer',
  'service-api-key',
  'cookie',
  'content-length',
  'expect',
  'x-request-id',
  'proxy-authorization',
  IDENTITY_HEADER,
  CLAIM_KEY_HEADER,
  CLAIM_TERMS_HEADER,
]);

export const LAST_EVENT_ID = 'last-event-id';

/**
 * Nor may a worker say what would hold for the whole origin of the manager, or lead a client, with
 * the key that it sends, elsewhere.
 */
const NOT_ANSWERED: ReadonlySet<string> = new Set([
  ...ORIGIN_WIDE,
  'trailer',
  'date',
  'location',
  'content-location',
  'refresh',
  'public-key-pins-report-only',
  'expect-ct',
  'set-login',
  'speculation-rules',
  'origin-agent-cluster',
  FLEET_KEY_HEADER,
  'sandpool-cluster',
  'sandpool-link',
]);

/** Headers by which an answer of another cluster says over which link it came. */
export const routeHeaders = ({
  clusterId,
  linkId,
}: Pick<WayToCluster, 'clusterId' | 'linkId'>): Readonly<Record<string, string>> => ({
  'Sandpool-Cluster': clusterId,
  'Sandpool-Link': linkId,
});

/** Whether another cluster gave the answer, so that its names are the fleet's already. */
export const isOfCluster = ({ headers }: { readonly headers?: Answer['headers'] }): boolean =>
  headers?.['Sandpool-Cluster'] !== undefined;

/** Lists what no operation of the API says, and would mean something to a browser. */
const NO_ANSWER_OF_THE_API = /^(?:access-control-|www-authenticate$|sourcemap$|x-sourcemap$)/;

/** Says what is asked of a worker beside what the client's request says. */
export interface AskedBeside {
  readonly requestId: string;
  /** The request's own body, or what was read of it; absent: it has none. */
  readonly body?: Readable | Buffer;
  /** Headers, in small letters, that are not for the worker. */
  readonly without?: ReadonlySet<string>;
  /** An Idempotency-Key for a request that has none. */
  readonly key?: string;
  /** The value of CLAIM_KEY_HEADER, for a claim that has no such key. */
  readonly claimKey?: string;
  /** The value of CLAIM_TERMS_HEADER, for a claim. */
  readonly claimTerms?: string;
  /** The Last-Event-ID in place of the request's own; undefined: none. */
  readonly after?: { readonly id: string | undefined };
}

interface PassedTerms extends AskedBeside {
  readonly identity: string | undefined;
}

/** The headers that the worker gets, in pairs. Its own server says how the body is framed. */
export const passedHeaders = (request: IncomingMessage, terms: PassedTerms): string[] => {
  const { headers } = request;
  const { identity, requestId, key, claimKey, claimTerms } = terms;
  const passed = clientsHeaders(request, terms);
  if (key !== undefined && headers['idempotency-key'] === undefined)
    passed.push('Idempotency-Key', key);
  if (claimKey !== undefined) passed.push(CLAIM_KEY_HEADER, claimKey);
  if (claimTerms !== undefined) passed.push(CLAIM_TERMS_HEADER, claimTerms);
  if (headers.host === undefined) passed.push('Host', 'worker');
  passed.push('X-Request-Id', requestId);
  if (identity !== undefined) passed.push(IDENTITY_HEADER, identity);
  return [...passed, ...framing(headers, terms.body)];
};

const clientsHeaders = (
  { rawHeaders, headers }: IncomingMessage,
  { after, without }: PassedTerms,
): string[] => {
  const named = namedByConnection(headers.connection);
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const lower = name.toLowerCase();
    const isKept = !NOT_PASSED.has(lower) && !named.has(lower) && !without?.has(lower);
    if (isKept && !(after && lower === LAST_EVENT_ID)) kept.push(name, rawHeaders[at + 1] ?? '');
  }
  if (after?.id !== undefined) kept.push(LAST_EVENT_ID, after.id);
  return kept;
};

const framing = (
  headers: IncomingMessage['headers'],
  body: PassedTerms['body'],
): readonly string[] => {
  if (!body) return [];
  if (Buffer.isBuffer(body)) return ['Content-Length', String(body.length)];
  const length = headers['content-length'];
  return length === undefined ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', length];
};

/**
 * The headers of an operation's answer that go on to the client. Whatever a worker sends, a browser
 * does not take it for a page of the manager.
 */
export const answeredHeaders = (answer: IncomingMessage): Record<string, string> => {
  const kept = passedOn(answer);
  for (const name in kept) if (NO_ANSWER_OF_THE_API.test(name)) delete kept[name];
  return kept;
};

/**
 * The headers of an endpoint's answer. A redirect leads on only where it stays within the endpoint
 * that was asked, and as a path, whatever host it names.
 */
export const endpointHeaders = (
  answer: IncomingMessage,
  { url, base }: { readonly url: string; readonly base: string },
): Record<string, string> => {
  const { location } = answer.headers;
  const inside = location === undefined ? undefined : pathInside(location, url, base);
  return { ...passedOn(answer), ...(inside === undefined ? {} : { location: inside }) };
};

const passedOn = ({ headers }: IncomingMessage): Record<string, string> => {
  const named = namedByConnection(headers.connection);
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (!NOT_ANSWERED.has(name) && !named.has(name) && value !== undefined)
      kept[name] = Array.isArray(value) ? value.join(', ') : value;
  kept['content-security-policy'] = PAGE_POLICY;
  return kept;
};

/** Reads it as a client would: `..`, backslashes and escapes of both lead nowhere else. */
const pathInside = (location: string, asked: string, base: string): string | undefined => {
  const prefix = readTarget(asked)?.prefix;
  if (prefix === undefined) return undefined;
  const from = new URL(asked, base);
  if (!URL.canParse(location, from.href)) return undefined;
  const { protocol, host, pathname, search, hash } = new URL(location, from);
  return /^https?:$/.test(protocol) && host === from.host && `${pathname}/`.startsWith(`${prefix}/`)
    ? pathname + search + hash
    : undefined;
};

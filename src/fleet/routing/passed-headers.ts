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

/** Consumed by the manager, or forbidden to clients at a worker. */
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
 * A worker must not set these: they would apply to the manager's whole origin, or redirect a client
 * that sends its key.
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

export const routeHeaders = ({
  clusterId,
  linkId,
}: Pick<WayToCluster, 'clusterId' | 'linkId'>): Readonly<Record<string, string>> => ({
  'Sandpool-Cluster': clusterId,
  'Sandpool-Link': linkId,
});

/** Another cluster gave the answer, with fleet names already. */
export const isOfCluster = ({ headers }: { readonly headers?: Answer['headers'] }): boolean =>
  headers?.['Sandpool-Cluster'] !== undefined;

/** The API never sends these, but a browser would obey. */
const NO_ANSWER_OF_THE_API = /^(?:access-control-|www-authenticate$|sourcemap$|x-sourcemap$)/;

export interface AskedBeside {
  readonly requestId: string;
  readonly body?: Readable | Buffer;
  readonly without?: ReadonlySet<string>;
  readonly key?: string;
  readonly claimKey?: string;
  readonly claimTerms?: string;
  /** An undefined `id` removes the header. */
  readonly after?: { readonly id: string | undefined };
}

interface PassedTerms extends AskedBeside {
  readonly identity: string | undefined;
}

/** Alternating names and values. The manager frames the body itself. */
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

/** Keeps a browser from treating a worker's body as a page of the manager. */
export const answeredHeaders = (answer: IncomingMessage): Record<string, string> => {
  const kept = passedOn(answer);
  for (const name in kept) if (NO_ANSWER_OF_THE_API.test(name)) delete kept[name];
  return kept;
};

/** A redirect must stay within the same endpoint. */
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

/**
 * Resolves the redirect as a client does, so `..`, backslashes and escapes cannot leave the
 * endpoint.
 */
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

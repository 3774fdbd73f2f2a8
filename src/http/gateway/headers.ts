import type { IncomingMessage } from 'node:http';
import type { OpenEndpoint } from '../../actors/sandbox/commands/sandbox-operations.ts';
import type { ClientAddresses } from '../limits/client-address.ts';
import type { EndpointTarget } from './target.ts';

/** RFC 9110, 7.6.1 */
export const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'te',
  'upgrade',
  'http2-settings',
];

/**
 * They hold credentials of the daemon, or facts that only the daemon may state, such as the
 * client's address.
 */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'service-api-key',
  'cookie',
  'cookie2',
  'host',
  'content-length',
  'expect',
  'proxy-authorization',
  'forwarded',
  'x-real-ip',
  'x-request-id',
]);
const FORWARDED_BY_US = 'x-forwarded-';

/** Some would apply to the daemon's whole origin, which all tenants share. */
export const ORIGIN_WIDE: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'set-cookie',
  'set-cookie2',
  'clear-site-data',
  'service-worker-allowed',
  'strict-transport-security',
  'public-key-pins',
  'alt-svc',
  'nel',
  'report-to',
  'reporting-endpoints',
  'proxy-authenticate',
  'x-request-id',
]);

/**
 * Gives a sandbox's page its own origin, so that its scripts reach neither the API nor a person's
 * session.
 */
export const PAGE_POLICY =
  'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts';

export interface RequestTerms {
  readonly endpoint: OpenEndpoint;
  readonly target: EndpointTarget;
  readonly requestId: string;
  readonly clients: ClientAddresses;
  readonly upgrade: boolean;
  /** The client waits for the sandbox's 100. */
  readonly awaitsContinue: boolean;
}

/** In pairs. Restates the framing, so that no client header can move the body's end. */
export const forwardedHeaders = (
  request: IncomingMessage,
  { endpoint, target, requestId, clients, upgrade, awaitsContinue }: RequestTerms,
): string[] => {
  const { headers, rawHeaders } = request;
  const named = namedByConnection(headers.connection);
  const kept: string[] = ['Host', `localhost:${endpoint.port}`];
  eachPair(rawHeaders, (name, value) => {
    const lower = name.toLowerCase();
    const known = asServersRead(lower);
    if (!NOT_FORWARDED.has(known) && !known.startsWith(FORWARDED_BY_US) && !named.has(lower))
      kept.push(name, value);
  });
  if (headers['transfer-encoding'] !== undefined) kept.push('Transfer-Encoding', 'chunked');
  else if (headers['content-length'] !== undefined)
    kept.push('Content-Length', headers['content-length']);
  else if (mayHaveBody(request)) kept.push('Content-Length', '0');
  if (/\btrailers\b/i.test(String(headers.te ?? ''))) kept.push('TE', 'trailers');
  if (awaitsContinue) kept.push('Expect', '100-continue');
  if (upgrade) kept.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
  const { protocol, host } = new URL(clients.base(request));
  kept.push(
    'X-Forwarded-For',
    clients.of(request),
    'X-Forwarded-Proto',
    protocol.slice(0, -1),
    'X-Forwarded-Host',
    host,
  );
  kept.push('X-Forwarded-Prefix', target.prefix, 'X-Request-Id', requestId);
  return kept;
};

/** CGI and its successors read X_Forwarded_For as X-Forwarded-For. */
const asServersRead = (name: string): string => name.replaceAll('_', '-');

/** In pairs. Throws for a transfer coding other than chunked. */
export const answeredHeaders = (
  answer: IncomingMessage,
  { endpoint, target, requestId, upgrade }: Omit<RequestTerms, 'awaitsContinue' | 'clients'>,
): string[] => {
  const coding = answer.headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new Error('it is encoded (Transfer-Encoding)');
  const named = namedByConnection(answer.headers.connection);
  const kept: string[] = [];
  eachPair(answer.rawHeaders, (name, value) => {
    const lower = name.toLowerCase();
    if (ORIGIN_WIDE.has(lower) || named.has(lower)) return;
    // RFC 9110, 8.6: a 204 lacks a body.
    if (lower === 'content-length' && answer.statusCode === 204) return;
    kept.push(name, lower === 'location' ? insidePrefix(value, endpoint, target) : value);
  });
  if (upgrade) kept.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
  else kept.push('Content-Security-Policy', PAGE_POLICY);
  kept.push('X-Request-Id', requestId);
  return kept;
};

/** Drops framing headers and all that are dropped from the head. */
export const answeredTrailers = ({ rawTrailers }: IncomingMessage): [string, string][] => {
  const kept: [string, string][] = [];
  eachPair(rawTrailers, (name, value) => {
    const lower = name.toLowerCase();
    if (!ORIGIN_WIDE.has(lower) && lower !== 'content-length') kept.push([name, value]);
  });
  return kept;
};

/** Keeps the sandbox's own redirects within the endpoint. */
const insidePrefix = (
  location: string,
  { port }: OpenEndpoint,
  { prefix }: EndpointTarget,
): string => {
  const path =
    location.replace(
      new RegExp(`^https?://(localhost|127\\.0\\.0\\.1):${port}(?=[/?#]|$)`, 'i'),
      '',
    ) || '/';
  if (path === location && (!path.startsWith('/') || path.startsWith('//'))) return location;
  return path === prefix || path.startsWith(`${prefix}/`)
    ? path
    : `${prefix}${path.startsWith('/') ? '' : '/'}${path}`;
};

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'DELETE']);
const mayHaveBody = ({ method }: IncomingMessage): boolean => !BODILESS.has(method ?? 'GET');

const NONE: ReadonlySet<string> = new Set();

/** RFC 9110, 7.6.1 */
export const namedByConnection = (connection: string | undefined): ReadonlySet<string> => {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close')
    return NONE;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
};

const eachPair = (raw: readonly string[], look: (name: string, value: string) => void): void => {
  for (let at = 0; at + 1 < raw.length; at += 2) look(raw[at] ?? '', raw[at + 1] ?? '');
};

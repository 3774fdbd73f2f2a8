import type { IncomingMessage } from 'node:http';
import { HOST } from './client-address.ts';
import { randomUUID } from 'node:crypto';

/**
 * Makes a request's target path and query alone, so that whoever reads it reads the same: of the
 * absolute form (RFC 9112, 3.2.2) the host goes where a host is looked for. False where the target
 * is none: it has a fragment, another scheme, user information or a malformed host, or is `*`
 * without OPTIONS. Such a request is no HTTP, and nothing of it must be read.
 */
export const takeTarget = (
  request: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
): boolean => {
  const target = request.url ?? '';
  if (target.includes('#')) return false;
  if (target.startsWith('/')) return true;
  if (target === '*') return request.method === 'OPTIONS';
  const [absolute, host = ''] = ABSOLUTE.exec(target) ?? [];
  if (absolute === undefined || !HOST.test(host)) return false;
  const rest = target.slice(absolute.length);
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  // One that lacks the header is refused for that.
  if (request.headers.host !== undefined) request.headers.host = host;
  return true;
};

const ABSOLUTE = /^https?:\/\/([^/?]*)/i;

const BEARER = /^Bearer +([\x21-\x7e]+) *$/i;

/**
 * Takes the key of a request from `Authorization: Bearer` (RFC 6750, 2.1) if it has no
 * SERVICE-API-KEY. The request then has the latter only, so that the key goes nowhere else.
 */
export const takeBearer = (request: IncomingMessage): void => {
  const { headers, rawHeaders } = request;
  const [, key] = BEARER.exec(headers.authorization ?? '') ?? [];
  if (key === undefined || headers['service-api-key'] !== undefined) return;
  headers['service-api-key'] = key;
  delete headers.authorization;
  request.rawHeaders = rawHeaders.filter(
    (_, at) => (rawHeaders[at - (at % 2)] ?? '').toLowerCase() !== 'authorization',
  );
};

const FIT = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's own `X-Request-Id` where it is fit to be logged, else a new one. */
export const requestIdFrom = (header: string | string[] | undefined): string =>
  typeof header === 'string' && FIT.test(header) ? header : randomUUID();

/** The console's cookie. Browsers accept `__Host-` cookies only over TLS and from loopback. */
export const SESSION_COOKIE = '__Host-sandpool-session';

/**
 * The value of a cookie; undefined where there is none. One that is given twice counts as none:
 * another host may have set one of them.
 */
export const cookieOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const values = (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
};

/** Whether the cookie of a session comes with it, good or not. */
export const hasSessionCookie = ({ headers }: IncomingMessage): boolean =>
  headers.cookie?.includes(`${SESSION_COOKIE}=`) === true;

/** Lists what may stand before a path: the API is the same under each. */
export const BASES = ['', '/v1'] as const;

/** `/v1` where the client asked there, else nothing. */
export const askedBase = (path: string): '' | '/v1' => (path.startsWith('/v1/') ? '/v1' : '');

export const withoutBase = (path: string): string => path.slice(askedBase(path).length);

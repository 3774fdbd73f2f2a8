import type { IncomingMessage } from 'node:http';
import { HOST } from './client-address.ts';
import { randomUUID } from 'node:crypto';

/**
 * Moves the host of the absolute form (RFC 9112, 3.2.2) to the Host header, so that all code reads
 * the same target. If false, read nothing else of the request.
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
  // A request without a Host is refused later.
  if (request.headers.host !== undefined) request.headers.host = host;
  return true;
};

const ABSOLUTE = /^https?:\/\/([^/?]*)/i;

const BEARER = /^Bearer +([\x21-\x7e]+) *$/i;

/** RFC 6750, 2.1. Removes the key, so that it is not forwarded. */
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

/** A new id if the client's is not safe to log. */
export const requestIdFrom = (header: string | string[] | undefined): string =>
  typeof header === 'string' && FIT.test(header) ? header : randomUUID();

/** Browsers accept `__Host-` cookies only over TLS and from loopback. */
export const SESSION_COOKIE = '__Host-sandpool-session';

/** Ignores a repeated cookie, since another host may have set it. */
export const cookieOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const values = (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
};

/** Valid or not. */
export const hasSessionCookie = ({ headers }: IncomingMessage): boolean =>
  headers.cookie?.includes(`${SESSION_COOKIE}=`) === true;

export const askedBase = (path: string): string => (path.startsWith('/v1/') ? '/v1' : '');

export const withoutBase = (path: string): string => path.slice(askedBase(path).length);

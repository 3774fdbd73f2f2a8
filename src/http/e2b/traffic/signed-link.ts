import type { IncomingMessage } from 'node:http';
import { fieldOf, filesQuery } from '../services/files/files-query.ts';

export interface FileLink {
  readonly signature: string;
  /** The signed text is `before`, the access token, then `after`. */
  readonly before: string;
  readonly after: string;
  /** In ms; infinite without an expiry. */
  readonly expiresAt: number;
}

const OPERATIONS: Readonly<Record<string, string>> = { GET: 'read', HEAD: 'read', POST: 'write' };

export const signedLinkOf = (request: IncomingMessage): FileLink | undefined => {
  const { method = '', url = '' } = request;
  const [path] = url.split('?', 1);
  const operation = OPERATIONS[method];
  if (path !== '/files' || operation === undefined) return undefined;
  const query = filesQuery(request);
  const signature = fieldOf(query, 'signature');
  if (signature === undefined || signature.length > LONGEST) return undefined;
  const expiration = fieldOf(query, 'signature_expiration');
  const signed = [fieldOf(query, 'path') ?? '', operation, fieldOf(query, 'username') ?? ''];
  return {
    signature,
    before: `${signed.join(':')}:`,
    after: expiration === undefined ? '' : `:${expiration}`,
    expiresAt: expiration === undefined ? Number.POSITIVE_INFINITY : momentOf(expiration),
  };
};

export const unsigned = (url: string): string => {
  const [path = '', ...query] = url.split('?');
  const kept = query
    .join('?')
    .split('&')
    .filter((pair) => !SIGNING.test(pair));
  return query.length === 0 ? url : `${path}?${kept.join('&')}`;
};

const SIGNING = /^signature(?:_expiration)?(?:=|$)/;

const LONGEST = 128;

/** In ms. A malformed expiry counts as expired. */
const momentOf = (seconds: string): number =>
  /^[0-9]{1,12}$/.test(seconds) ? Number(seconds) * 1_000 : 0;

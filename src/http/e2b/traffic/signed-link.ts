import type { IncomingMessage } from 'node:http';
import { fieldOf, filesQuery } from '../services/files/files-query.ts';

/** A link to one file, to be read or to be written. */
export interface FileLink {
  readonly signature: string;
  /** Comes before the access token in what was signed, and `after` behind it. */
  readonly before: string;
  readonly after: string;
  /** Milliseconds; infinite where the link says nothing. */
  readonly expiresAt: number;
}

const OPERATIONS: Readonly<Record<string, string>> = { GET: 'read', HEAD: 'read', POST: 'write' };

/** Reads the signature of a request for a file; undefined where it has none. */
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

/** Returns the target of a request without what its link was signed by. */
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

/** One that is no moment has passed. */
const momentOf = (seconds: string): number =>
  /^[0-9]{1,12}$/.test(seconds) ? Number(seconds) * 1_000 : 0;

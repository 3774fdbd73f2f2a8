import type { IncomingMessage } from 'node:http';

/** A link to one file, to be read or to be written. */
export interface FileLink {
  readonly signature: string;
  readonly text: (token: string) => string;
  /** Milliseconds; infinite where the link says nothing. */
  readonly expiresAt: number;
}

const OPERATIONS: Readonly<Record<string, string>> = { GET: 'read', HEAD: 'read', POST: 'write' };

/** Reads the signature of a request for a file; undefined where it has none. */
export const signedLinkOf = ({ method = '', url = '' }: IncomingMessage): FileLink | undefined => {
  const [path, query = ''] = url.split('?', 2);
  const operation = OPERATIONS[method];
  if (path !== '/files' || operation === undefined || !query.includes('signature'))
    return undefined;
  const given = new URLSearchParams(query);
  const signature = given.get('signature');
  if (signature === null || signature.length > LONGEST) return undefined;
  const expiration = given.get('signature_expiration');
  const signed = [given.get('path') ?? '', operation, given.get('username') ?? ''];
  return {
    signature,
    text: (token) => [...signed, token, ...(expiration === null ? [] : [expiration])].join(':'),
    expiresAt: expiration === null ? Number.POSITIVE_INFINITY : momentOf(expiration),
  };
};

const LONGEST = 128;

/** One that is no moment has passed. */
const momentOf = (seconds: string): number =>
  /^[0-9]{1,12}$/.test(seconds) ? Number(seconds) * 1_000 : 0;

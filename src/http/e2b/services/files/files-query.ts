import type { IncomingMessage } from 'node:http';
import { invalidArgument } from '../../../../model/refusals.ts';
import { requireUser } from '../user.ts';

const LONGEST = 16_384;

/**
 * Undecoded. All readers use it, so the signed file is the opened file. Refuses repeated
 * parameters.
 */
export const filesQuery = ({ url = '' }: IncomingMessage): ReadonlyMap<string, string> => {
  const query = new Map<string, string>();
  for (const pair of url.slice(url.indexOf('?') + 1 || url.length, LONGEST).split('&')) {
    const [name = '', ...value] = pair.split('=');
    if (name === '') continue;
    if (query.has(name)) throw invalidArgument(name.slice(0, 64), 'is given twice');
    query.set(name, value.join('='));
  }
  return query;
};

/** Refuses invalid UTF-8. */
export const fieldOf = (query: ReadonlyMap<string, string>, name: string): string | undefined => {
  const value = query.get(name);
  return value === undefined ? undefined : decoded(name, value);
};

/** Empty if absent. Refuses another user. */
export const pathAsked = (request: IncomingMessage): string => {
  const query = filesQuery(request);
  requireUser(fieldOf(query, 'username') ?? '');
  return fieldOf(query, 'path') ?? '';
};

const decoded = (name: string, value: string): string => {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    throw invalidArgument(name, 'is not percent-encoded UTF-8');
  }
};

import type { IncomingMessage } from 'node:http';
import { invalidArgument } from '../../../model/refusals.ts';
import { requireUser } from '../user.ts';

const LONGEST = 16_384;

/**
 * Returns the path that a request for `/files` names, empty where it names none. Refuses another
 * user, and what is no UTF-8.
 */
export const pathAsked = ({ url = '' }: IncomingMessage): string => {
  const query = new Map<string, string>();
  for (const pair of url.slice(url.indexOf('?') + 1 || url.length, LONGEST).split('&')) {
    const [name = '', value = ''] = pair.split('=', 2);
    if (name === '') continue;
    if (query.has(name)) throw invalidArgument(name.slice(0, 64), 'is given twice');
    query.set(name, value);
  }
  requireUser(decoded('username', query.get('username') ?? ''));
  return decoded('path', query.get('path') ?? '');
};

const decoded = (name: string, value: string): string => {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    throw invalidArgument(name, 'is not percent-encoded UTF-8');
  }
};

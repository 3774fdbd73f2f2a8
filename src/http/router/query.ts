import { invalidArgument } from '../../model/refusals.ts';

const NO_QUERY: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Returns the parameters of a query string. One that the operation takes is refused where it is
 * given more than once; others are let pass, and a `Warning` names them.
 */
export const readQuery = (
  text: string,
  isTaken: (name: string) => boolean,
): Readonly<Record<string, string>> => {
  if (text === '') return NO_QUERY;
  const query = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (query.has(name) && isTaken(name))
      throw invalidArgument(name.slice(0, 256), 'is given more than once');
    query.set(name, value);
  }
  return Object.fromEntries(query);
};

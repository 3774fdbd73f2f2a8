import { invalidArgument } from '../../model/refusals.ts';

const NO_QUERY: Readonly<Record<string, string>> = Object.freeze({});

/**
 * The parameters of a query string, each at most once. Names that no schema asks for are let pass;
 * a `Warning` names them.
 */
export const readQuery = (text: string): Readonly<Record<string, string>> => {
  if (text === '') return NO_QUERY;
  const query = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (query.has(name)) throw invalidArgument(name.slice(0, 256), 'is given more than once');
    query.set(name, value);
  }
  return Object.fromEntries(query);
};

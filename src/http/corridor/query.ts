import { z } from 'zod';
import { invalidArgument } from '../../model/refusals.ts';

/** Not part of the approved request. */
export const WAIT_PARAMETER = 'waitApprovalSeconds';

export const STRICT_PARAMETER = 'strict';

const NO_QUERY: Readonly<Record<string, string>> = Object.freeze({});
const NO_MAPS: ReadonlySet<string> = new Set();

const MOST_PAIRS = 64;

/** A query has one `name.key` parameter per entry of a map. */
export const mapParametersOf = (schema: unknown): ReadonlySet<string> => {
  if (!(schema instanceof z.ZodObject)) return NO_MAPS;
  const maps = Object.entries(schema.shape).filter(
    ([, part]) => part instanceof z.ZodOptional && part.unwrap() instanceof z.ZodRecord,
  );
  return maps.length === 0 ? NO_MAPS : new Set(maps.map(([name]) => name));
};

/** Generated clients send `name[key]`. */
export const mapPairOf = (
  name: string,
  maps: ReadonlySet<string>,
): { readonly map: string; readonly key: string } | undefined => {
  const at = name.search(/[.[]/);
  const map = name.slice(0, Math.max(0, at));
  if (!maps.has(map)) return undefined;
  if (name[at] === '.') return { map, key: name.slice(at + 1) };
  return name.endsWith(']') ? { map, key: name.slice(at + 1, -1) } : undefined;
};

/** Groups entries of `maps`. Refuses a repeated parameter; keeps unknown names for a `Warning`. */
export const readQuery = (
  text: string,
  maps: ReadonlySet<string> = NO_MAPS,
): Readonly<Record<string, string | Readonly<Record<string, string>>>> => {
  if (text === '') return NO_QUERY;
  const query = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (query.has(name)) throw invalidArgument(name.slice(0, 256), 'is given more than once');
    query.set(name, value);
  }
  // Stands for invalid UTF-8, but a client may also send it.
  if (text.includes('%') && [...query.values()].some((value) => value.includes('\uFFFD')))
    refuseNoUtf8(text);
  return maps.size === 0 ? Object.fromEntries(query) : gathered(query, maps);
};

const refuseNoUtf8 = (text: string): void => {
  for (const pair of text.split('&')) {
    const [name = '', value = ''] = pair.split('=', 2);
    try {
      decodeURIComponent(value);
    } catch {
      const [first = name] = new URLSearchParams(name).keys();
      throw invalidArgument(first.slice(0, 256), 'must be UTF-8, percent-encoded');
    }
  }
};

const gathered = (
  query: ReadonlyMap<string, string>,
  maps: ReadonlySet<string>,
): Readonly<Record<string, string | Readonly<Record<string, string>>>> => {
  const single: (readonly [string, string])[] = [];
  const pairs = new Map<string, Map<string, string>>();
  for (const [name, value] of query) {
    const pair = mapPairOf(name, maps);
    if (!pair) {
      single.push([name, value]);
      continue;
    }
    let map = pairs.get(pair.map);
    if (!map) pairs.set(pair.map, (map = new Map()));
    if (map.has(pair.key)) throw invalidArgument(name.slice(0, 256), 'is given more than once');
    map.set(pair.key, value);
    if (map.size > MOST_PAIRS)
      throw invalidArgument(pair.map, `must have at most ${MOST_PAIRS} entries`);
  }
  return Object.fromEntries<string | Readonly<Record<string, string>>>([
    ...single,
    ...[...pairs].map(([map, of]) => [map, Object.fromEntries(of)] as const),
  ]);
};

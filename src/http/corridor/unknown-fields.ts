import { z } from 'zod';
import { invalidArgument } from '../../model/refusals.ts';
import { mapPairOf, mapParametersOf, STRICT_PARAMETER, WAIT_PARAMETER } from './query.ts';

const MOST_NAMED = 16;
const LONGEST_NAME = 64;
/** Bounds a path that a refusal names. */
const LONGEST_PATH = 256;

/**
 * Names the fields of a body that its schema does not know, those of objects inside too. They are
 * let pass and nothing of them is kept: a client of a richer service is served, and told. At most
 * 16 are named.
 */
export const unknownFields = (schema: z.ZodType): ((body: unknown) => readonly string[]) => {
  const known = knownIn(schema);
  return (body) => {
    const names: string[] = [];
    if (known) collect(body, known, { path: '', names });
    return names;
  };
};

/** Refuses the first of the unknown fields if the query asks for that. */
export const refuseIfStrict = (query: string, [first]: readonly string[]): void => {
  if (query === '') return;
  const [value, ...more] = new URLSearchParams(query).getAll(STRICT_PARAMETER);
  if (value === undefined) return;
  if (more.length > 0) throw invalidArgument(STRICT_PARAMETER, 'is given more than once');
  if (!['true', 'false', ''].includes(value))
    throw invalidArgument(STRICT_PARAMETER, 'must be one of true, false', ['true', 'false']);
  if (value !== 'false' && first !== undefined)
    throw invalidArgument(first.slice(0, LONGEST_PATH), 'is unknown');
};

/** Returns a value of the `Warning` header. */
export const unknownFieldWarning = (name: string): string =>
  `299 - "unknown field ${printable(name)}"`;

/**
 * Names the parameters of a query string that its schema does not know, as values of the `Warning`
 * header; 16 at most. Without a schema none is known; of a schema that is no object every one is.
 */
export const unknownQueryWarnings = (
  schema: z.ZodType = z.object({}),
): ((query: string) => readonly string[]) => {
  const known = knownIn(schema);
  if (known?.kind !== 'object') return () => [];
  const maps = mapParametersOf(schema);
  return (query) => {
    if (query === '') return [];
    const names = new Set(
      [...new URLSearchParams(query).keys()].filter(
        (name) => !OF_ALL.has(name) && !known.fields.has(name) && !mapPairOf(name, maps),
      ),
    );
    return [...names]
      .slice(0, MOST_NAMED)
      .map((name) => `299 - "unknown query parameter ${printable(name)}"`);
  };
};

/** Parameters that every operation takes. */
const OF_ALL: ReadonlySet<string> = new Set([WAIT_PARAMETER, STRICT_PARAMETER]);

/** Describes what a schema knows the fields of; undefined: of nothing. */
type Known =
  | { readonly kind: 'object'; readonly fields: ReadonlyMap<string, Known | undefined> }
  | { readonly kind: 'list'; readonly items: Known };

const knownIn = (schema: unknown): Known | undefined => {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodNullable
  )
    return knownIn(schema.unwrap());
  if (schema instanceof z.ZodObject)
    return {
      kind: 'object',
      fields: new Map(Object.entries(schema.shape).map(([name, part]) => [name, knownIn(part)])),
    };
  const items = schema instanceof z.ZodArray ? knownIn(schema.element) : undefined;
  return items && { kind: 'list', items };
};

const collect = (
  value: unknown,
  known: Known,
  { path, names }: { readonly path: string; readonly names: string[] },
): void => {
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) !== (known.kind === 'list')
  )
    return;
  if (known.kind === 'list') {
    for (const [index, item] of Object.entries(value))
      collect(item, known.items, { path: `${path}[${index}]`, names });
    return;
  }
  for (const [name, part] of Object.entries(value)) {
    if (names.length === MOST_NAMED) return;
    const at = path === '' ? name : `${path}.${name}`;
    const inside = known.fields.get(name);
    if (!known.fields.has(name)) names.push(at);
    else if (inside) collect(part, inside, { path: at, names });
  }
};

/** Fit for a quoted string of a header. */
const printable = (name: string): string =>
  name
    .slice(0, LONGEST_NAME)
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replaceAll(/["\\]/g, '\\$&');

import { z } from 'zod';
import { fieldPath } from '../../lib/field-path.ts';
import { invalidArgument } from '../../model/refusals.ts';
import { unsafeFieldIn } from '../../model/templates/unsafe-fields.ts';
import { mapPairOf, mapParametersOf, STRICT_PARAMETER, WAIT_PARAMETER } from './query.ts';

const MOST_NAMED = 16;
const LONGEST_NAME = 64;
const LONGEST_PATH = 256;

/** Throws INVALID_ARGUMENT for the first invalid field. */
export const check = <T>(schema: z.ZodType<T>, value: unknown): T => {
  const result = parsed(schema, value);
  if (result.success) return result.data;
  refuseUnknown(result.error.issues, value);
  const issue = result.error.issues[0];
  if (!issue) throw invalidArgument('body', 'is not valid');
  const field = fieldOf(issue.path);
  if (valueAt(value, issue.path) === undefined && issue.code !== 'custom')
    throw invalidArgument(field, 'is required');
  throw invalidArgument(field, problemOf(issue), allowedOf(issue));
};

type Issue = z.core.$ZodIssue;

/** zod reads `length` of any value, and throws if it is an object. */
const parsed = <T>(schema: z.ZodType<T>, value: unknown): z.ZodSafeParseResult<T> => {
  try {
    return schema.safeParse(value);
  } catch (error) {
    const result = schema.safeParse(withoutOddLengths(value));
    if (result.success) throw error;
    return result;
  }
};

const withoutOddLengths = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutOddLengths);
  const kept = Object.entries(value).filter(
    ([name, part]) => name !== 'length' || typeof part !== 'object',
  );
  return Object.fromEntries(kept.map(([name, part]) => [name, withoutOddLengths(part)]));
};

const refuseUnknown = (issues: readonly Issue[], value: unknown): void => {
  const unknown = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => [...issue.path.map(asKey), key])
      : [],
  );
  for (const path of unknown) {
    const unsafe = unsafeFieldIn(
      { [String(path.at(-1))]: valueAt(value, path) },
      path.slice(0, -1),
    );
    if (unsafe) throw invalidArgument(fieldOf(unsafe.path), unsafe.problem);
  }
  const [first] = unknown;
  if (first && issues[0]?.code === 'unrecognized_keys')
    throw invalidArgument(
      fieldOf(first),
      `unknown field ${fieldOf(first.slice(first[0] === 'crdJson' ? 1 : 0))}`,
    );
};

const asKey = (part: PropertyKey): string | number =>
  typeof part === 'symbol' ? String(part) : part;

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
};

const problemOf = (issue: Issue): string => {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${NOUNS[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be one of ${valuesOf(issue.values).join(', ')}`;
    case 'too_small':
      return `must be at least ${String(issue.minimum)}${unitOf(issue.origin)}`;
    case 'too_big':
      return `must be at most ${String(issue.maximum)}${unitOf(issue.origin)}`;
    default:
      return issue.message;
  }
};

const unitOf = (origin: string): string => {
  if (origin === 'string') return ' characters long';
  return origin === 'array' ? ' items long' : '';
};

const allowedOf = (issue: Issue): readonly string[] | undefined =>
  issue.code === 'invalid_value' ? valuesOf(issue.values) : undefined;

const valuesOf = (values: readonly unknown[]): readonly string[] =>
  values.map(String).filter((value) => value !== '');

const fieldOf = (path: readonly PropertyKey[]): string => fieldPath(path).slice(0, 256) || 'body';

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown => {
  let at: unknown = value;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = Reflect.get(at, part);
  }
  return at;
};

/** At most 16. Only a warning, so that clients of a richer service still work. */
export const unknownFields = (schema: z.ZodType): ((body: unknown) => readonly string[]) => {
  const known = knownIn(schema);
  return (body) => {
    const names: string[] = [];
    if (known) collect(body, known, { path: '', names });
    return names;
  };
};

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

export const unknownFieldWarning = (name: string): string =>
  `299 - "unknown field ${printable(name)}"`;

/** At most 16. Without a schema every parameter is unknown. */
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

const OF_ALL: ReadonlySet<string> = new Set([WAIT_PARAMETER, STRICT_PARAMETER]);

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

/** For a quoted string in a header. */
const printable = (name: string): string =>
  name
    .slice(0, LONGEST_NAME)
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replaceAll(/["\\]/g, '\\$&');

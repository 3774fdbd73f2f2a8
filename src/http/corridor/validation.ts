import type { z } from 'zod';
import { fieldPath } from '../../lib/field-path.ts';
import { invalidArgument } from '../../model/refusals.ts';
import { unsafeFieldIn } from '../../model/templates/unsafe-fields.ts';

/** The checked value, or a refusal with INVALID_ARGUMENT that names the first field at fault. */
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

/**
 * zod compares the `length` of whatever stands in the place of text or a list, and throws where
 * that is an object.
 */
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

/** Refuses unknown fields, first those that are unsafe, by their own path. */
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

/** A flag's empty value need not be told of. */
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

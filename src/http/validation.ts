import type { z } from 'zod';
import { invalidArgument } from '../model/refusals.ts';

/** The checked value, or a refusal with INVALID_ARGUMENT that names the first field at fault. */
export const check = <T>(schema: z.ZodType<T>, value: unknown): T => {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  if (!issue) throw invalidArgument('body', 'is not valid');
  const field = fieldOf(issue.path);
  if (valueAt(value, issue.path) === undefined && issue.code !== 'custom') throw invalidArgument(field, 'is required');
  throw invalidArgument(field, problemOf(issue), allowedOf(issue));
};

type Issue = z.core.$ZodIssue;

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a string', number: 'a number', int: 'an integer', boolean: 'true or false', object: 'an object', record: 'an object', array: 'an array',
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
const valuesOf = (values: readonly unknown[]): readonly string[] => values.map(String).filter((value) => value !== '');

const fieldOf = (path: readonly PropertyKey[]): string => {
  let field = '';
  for (const part of path) {
    if (typeof part === 'number') field += `[${part}]`;
    else field += `${field === '' ? '' : '.'}${String(part)}`;
  }
  return field === '' ? 'body' : field.slice(0, 256);
};

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown => {
  let at: unknown = value;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = Reflect.get(at, part);
  }
  return at;
};

import { parseDuration } from '../durations.ts';
import { parseQuantity } from '../quantities.ts';

const OPERATORS = ['>=', '<=', '!=', '=', '>', '<'] as const;
type Operator = (typeof OPERATORS)[number];

/** Such as `body.replicas>10`. */
export interface BodyCondition {
  /** From the outside in; each item of a list is checked. */
  readonly path: readonly string[];
  readonly operator: Operator;
  /** Alternatives; more than one only with `=` and `!=`. */
  readonly values: readonly string[];
}

export interface ReadBody {
  readonly value: unknown;
}

const FORM = /^body\.([\w-]+(?:\.[\w-]+)*)(>=|<=|!=|=|>|<)([^=<>].*)$/;

/** Returns the condition, or a description of its fault for people. */
export const parseBodyCondition = (text: string): BodyCondition | string => {
  const [, field = '', sign, given = ''] = FORM.exec(text) ?? [];
  const operator = OPERATORS.find((each) => each === sign);
  if (!operator)
    return 'must be body.FIELD, one of = != > >= < <=, and a value, such as body.replicas>10';
  const path = field.split('.');
  const values = given.split('|');
  const isEquality = operator === '=' || operator === '!=';
  if (!isEquality && (values.length > 1 || amountOf(path, given) === undefined))
    return `must compare ${field} with one number, quantity or duration`;
  return { path, operator, values };
};

/**
 * A rule that allows requests does not match unknown values, and must match all items of a list.
 * Any other rule matches unknown values, and one item suffices. `body` is undefined if it can't be
 * read.
 */
export const bodyHolds = (
  { path, operator, values }: BodyCondition,
  body: ReadBody | undefined,
  allows: boolean,
): boolean => {
  if (!body) return !allows;
  const found = valuesAt(body.value, path);
  if (found.length === 0) return operator === '!=';
  const fits = (value: unknown): boolean => {
    if (operator === '=') return isOneOf(value, values, !allows);
    if (operator === '!=') return !isOneOf(value, values, allows);
    return compared(amountOf(path, value), amountOf(path, values[0]), operator) ?? !allows;
  };
  return allows ? found.every(fits) : found.some(fits);
};

/** `isLoose` ignores a cluster prefix of a name. */
const isOneOf = (value: unknown, values: readonly string[], isLoose: boolean): boolean => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return values.includes(text) || (isLoose && values.includes(text.split('::').at(-1) ?? ''));
};

const compared = (
  amount: number | undefined,
  bound: number | undefined,
  operator: Operator,
): boolean | undefined => {
  if (amount === undefined || bound === undefined) return undefined;
  if (operator === '>') return amount > bound;
  if (operator === '>=') return amount >= bound;
  return operator === '<' ? amount < bound : amount <= bound;
};

/** In seconds; 0 or null means never. */
const DURATION = 'idleTimeout';

const amountOf = (path: readonly string[], value: unknown): number | undefined => {
  if (path.at(-1) !== DURATION)
    return typeof value === 'string' ? parseQuantity(value) : numberIn(value);
  const milliseconds = typeof value === 'string' ? parseDuration(value) : undefined;
  const seconds = milliseconds === undefined ? numberIn(Number(value)) : milliseconds / 1_000;
  return seconds === 0 ? Number.POSITIVE_INFINITY : seconds;
};

const numberIn = (value: unknown): number | undefined =>
  typeof value === 'number' && !Number.isNaN(value) ? value : undefined;

/** Null counts as absent, except for a duration. */
const valuesAt = (value: unknown, path: readonly string[]): readonly unknown[] => {
  if (Array.isArray(value)) return value.flatMap((item: unknown) => valuesAt(item, path));
  const [name, ...rest] = path;
  if (name === undefined) return value === undefined ? [] : [value];
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return [];
  const inner: unknown = (value as Readonly<Record<string, unknown>>)[name];
  return inner === null && name !== DURATION ? [] : valuesAt(inner, rest);
};

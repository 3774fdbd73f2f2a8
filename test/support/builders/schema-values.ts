import fc from 'fast-check';
import { at, isObject, type Json } from '../harness/documented-answers.ts';

/** Values that fit a schema. Throws on keywords that our schemas don't use. */
export const valuesOf = (schema: Json): fc.Arbitrary<unknown> => {
  const made = ofSchemas.get(schema) ?? arbitraryOf(schema);
  ofSchemas.set(schema, made);
  return made;
};

/** Building takes longer than drawing many values. */
const ofSchemas = new WeakMap<Json, fc.Arbitrary<unknown>>();

const arbitraryOf = (schema: Json): fc.Arbitrary<unknown> => {
  if (typeof schema['$ref'] === 'string') return valuesOf(at(schema['$ref'].slice(1)) ?? {});
  if ('const' in schema) return fc.constant(schema['const']);
  if (Array.isArray(schema['enum']))
    return fc.constantFrom<unknown>(...(schema['enum'] as unknown[]));
  const choices = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(choices)) return fc.oneof(...choices.filter(isObject).map(valuesOf));
  const { type } = schema;
  if (Array.isArray(type))
    return fc.oneof(...type.map((each: unknown) => valuesOf({ ...schema, type: each })));
  switch (type) {
    case 'string':
      return texts(schema);
    case 'integer':
      return fc.integer({
        min: numberOr(schema['minimum'], -1_000),
        max: numberOr(schema['maximum'], 1_000_000),
      });
    case 'number':
      return fc
        .double({
          min: numberOr(schema['minimum'], -1_000),
          max: numberOr(schema['maximum'], 1_000_000),
          noNaN: true,
        })
        .map((value) => value + 0);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(valuesOf(isObject(schema['items']) ? schema['items'] : {}), {
        minLength: numberOr(schema['minItems'], 0),
        maxLength: Math.min(numberOr(schema['maxItems'], 4), 4),
      });
    case 'object':
      return objects(schema);
    default:
      throw new Error(`no values for ${JSON.stringify(schema)}`);
  }
};

/** Such as `^[^\0]*$`. */
const ANY_TEXT = /^\^(\/?)\[\^\\u0000\]\*\$$/;
const SHORT = 24;

const ofPatterns = new Map<string, fc.Arbitrary<string>>();
/** fast-check takes 50 ms and more for a pattern. */
const matching = (pattern: string): fc.Arbitrary<string> => {
  const made = ofPatterns.get(pattern) ?? fc.stringMatching(new RegExp(pattern), { size: 'small' });
  ofPatterns.set(pattern, made);
  return made;
};

const texts = (schema: Json): fc.Arbitrary<string> => {
  if (schema['format'] === 'date-time') {
    return fc
      .date({ min: new Date('2020-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  const least = numberOr(schema['minLength'], 0);
  const most = numberOr(schema['maxLength'], SHORT);
  const pattern = typeof schema['pattern'] === 'string' ? schema['pattern'] : undefined;
  const start = pattern === undefined ? '' : ANY_TEXT.exec(pattern)?.[1];
  if (start === undefined && pattern !== undefined)
    return matching(pattern).filter(({ length }) => length >= least && length <= most);
  return fc
    .string({
      unit: 'binary',
      minLength: least,
      maxLength: Math.max(least, Math.min(most - 1, SHORT)),
    })
    .map((text) => `${start ?? ''}${pattern === undefined ? text : text.replaceAll('\0', 'x')}`);
};

const objects = (schema: Json): fc.Arbitrary<object> => {
  const properties = isObject(schema['properties']) ? schema['properties'] : undefined;
  if (!properties) {
    const values = isObject(schema['additionalProperties'])
      ? valuesOf(schema['additionalProperties'])
      : fc.string();
    const names = isObject(schema['propertyNames'])
      ? valuesOf(schema['propertyNames']).map(String)
      : fc.string({ unit: 'binary' });
    return fc.dictionary(
      names.filter((name) => !FORBIDDEN.has(name)),
      values,
      { maxKeys: 4, noNullPrototype: true },
    );
  }
  const possible = Object.entries(properties).filter(
    (entry): entry is [string, Json] => isObject(entry[1]) && !('not' in entry[1]),
  );
  const required = Array.isArray(schema['required']) ? schema['required'].map(String) : [];
  return fc.record(Object.fromEntries(possible.map(([name, value]) => [name, valuesOf(value)])), {
    requiredKeys: required,
    noNullPrototype: true,
  });
};

/** Refused at any depth, which JSON Schema can't express. */
const FORBIDDEN: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

const numberOr = (value: unknown, otherwise: number): number =>
  typeof value === 'number' ? value : otherwise;

import { z } from 'zod';

/** A part of a CustomResourceDefinition's structural schema. */
export interface Structural {
  [keyword: string]: unknown;
}

/**
 * Converts a zod schema: the same types, bounds and defaults in Kubernetes' keywords. Throws at a
 * keyword that it would lose. Leaves out what the API server does itself: unknown fields are
 * refused or pruned, keys are text. Checks by code need a rule.
 */
export const structuralOf = (schema: z.ZodType): Structural =>
  convert(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), '');

/** Taken over as they are. */
const KEPT = new Set([
  'type',
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'required',
  'default',
]);
const DROPPED = new Set(['$schema', 'propertyNames', 'id', 'format', 'properties']);

const convert = (node: unknown, path: string): Structural => {
  const given = node as Readonly<Record<string, unknown>>;
  if (isPort(given))
    return { 'x-kubernetes-int-or-string': true, 'x-kubernetes-validations': [PORT_RULE] };
  // The pattern that zod adds is a long one, and Kubernetes knows the format.
  if (given['format'] === 'date-time') return { type: 'string', format: 'date-time' };
  const structural: Structural = {};
  for (const [keyword, value] of Object.entries(given)) {
    if (keyword === 'properties' && Object.keys(value as object).length > 0)
      structural['properties'] = mapped(value, path);
    else if (keyword === 'description') structural['description'] = withoutLinks(String(value));
    else if (keyword === 'items') structural['items'] = convert(value, `${path}[]`);
    else if (keyword === 'pattern') structural['pattern'] = asRe2(String(value));
    else if (keyword === 'const') structural['enum'] = [value];
    else if (keyword === 'additionalProperties') additional(structural, value, path);
    else if (KEPT.has(keyword) && !(keyword === 'type' && Array.isArray(value)))
      structural[keyword] = value;
    else if (!DROPPED.has(keyword))
      throw new Error(`${path || 'the schema'}: ${keyword} has no place in a structural schema`);
  }
  return structural;
};

const mapped = (properties: unknown, path: string): Structural =>
  Object.fromEntries(
    Object.entries(properties as object).map(([name, part]) => [
      name,
      convert(part, `${path}.${name}`),
    ]),
  );

/** `false`: the API server's own business. An empty object: whatever is given is kept. */
const additional = (structural: Structural, value: unknown, path: string): void => {
  if (value === false) return;
  if (value === true || Object.keys(value as object).length === 0)
    structural['x-kubernetes-preserve-unknown-fields'] = true;
  else structural['additionalProperties'] = convert(value, `${path}.*`);
};

/** A number or a name. */
const isPort = ({ anyOf }: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(anyOf) &&
  anyOf.length === 2 &&
  (anyOf as { type?: unknown }[]).map(({ type }) => type).join() === 'integer,string';

const PORT_RULE = {
  rule: 'type(self) == string ? size(self) <= 63 : (self >= 1 && self <= 65535)',
  message: 'must be a port from 1 to 65535, or the name of a port of the container',
};

/**
 * Go's regular expressions lack
 *
 * u.
 */
const asRe2 = (pattern: string): string => pattern.replaceAll('\\u0000', '\\x00');

/** They lead into docs/. */
const withoutLinks = (text: string): string => text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');

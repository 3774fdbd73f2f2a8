import { z } from 'zod';

/** As in a CustomResourceDefinition. */
export interface Structural {
  [keyword: string]: unknown;
}

/**
 * The same types, bounds and defaults. Throws at a keyword that it would lose. The API server
 * itself refuses or prunes unknown fields. Checks by code need a rule.
 */
export const structuralOf = (schema: z.ZodType): Structural =>
  convert(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), '');

/** Unchanged. */
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
  // zod's pattern is long, and Kubernetes knows the format.
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

/** `false`: checked by the API server. An empty object: keeps everything. */
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

/** Go's regular expressions have no \u. */
const asRe2 = (pattern: string): string => pattern.replaceAll('\\u0000', '\\x00');

/** They lead into docs/. */
const withoutLinks = (text: string): string => text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');

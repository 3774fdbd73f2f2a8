import { statusOf } from '../error-table.ts';
import type { Route } from '../route.ts';
import { EXAMPLES } from './examples.ts';
import { errorCodesOf, errorResponse, errorSchema, takesIdempotencyKey } from './operation-errors.ts';
import { OPERATION_NOTES } from './operation-notes.ts';
import { type Components, type JsonSchema, propertiesOf, withoutPageLinks } from './components.ts';

type Json = Readonly<Record<string, unknown>>;

/** One row as an operation of the document. */
export const operationOf = (row: Route, components: Components): Json => {
  const pascal = row.operationId.charAt(0).toUpperCase() + row.operationId.slice(1);
  const example = EXAMPLES[row.operationId];
  return {
    operationId: row.operationId,
    summary: row.summary,
    description: withoutPageLinks(OPERATION_NOTES[row.operationId]?.trim() ?? row.summary),
    tags: [tagOf(row)],
    ...(row.deprecated ? { deprecated: true } : {}),
    security: SECURITY[row.access],
    parameters: parametersOf(row, components),
    ...(row.body ? {
      requestBody: {
        required: requiresBody(components.input(row.body)),
        content: { 'application/json': {
          schema: components.schema(`${pascal}Body`, components.input(row.body)),
          ...(example?.request === undefined ? {} : { example: example.request }),
        } },
      },
    } : {}),
    responses: responsesOf(row, { components, pascal }),
  };
};

/** The tag of each first part of a path, `/admin` left out. */
export const TAGS: Readonly<Record<string, { readonly name: string; readonly description: string }>> = {
  sandboxes: { name: 'Sandboxes', description: 'Claim a sandbox, look at it, run commands in it, give it back.' },
  sandboxpools: { name: 'Pools', description: 'Sets of instances that were started ahead.' },
  'api-keys': { name: 'API keys', description: 'Who may call.' },
  events: { name: 'Events', description: 'What happens to sandboxes and pools.' },
  healthz: { name: 'Health', description: 'Whether the daemon runs and can do its work.' },
  readyz: { name: 'Health', description: 'Whether the daemon runs and can do its work.' },
};

const tagOf = ({ path }: Route): string => {
  const [, first = '', second = ''] = path.split('/');
  const tag = TAGS[first === 'admin' ? second : first];
  if (!tag) throw new Error(`no tag for ${path}`);
  return tag.name;
};

const SECURITY: Readonly<Record<Route['access'], readonly Json[]>> = {
  open: [], tenant: [{ ApiKeyAuth: [] }], admin: [{ AdminKeyAuth: [] }],
};

const requiresBody = (schema: JsonSchema): boolean => Array.isArray(schema['required']) && schema['required'].length > 0;

const parametersOf = (row: Route, components: Components): readonly Json[] => {
  const inPath = row.params ? Object.entries(propertiesOf(components.input(row.params.schema))) : [];
  const inQuery = row.query ? Object.entries(components.query(row.query)) : [];
  return [
    ...inPath.map(([name, schema]) => parameterOf({ name, in: 'path', required: true }, schema)),
    ...inQuery.map(([name, { schema, required }]) => parameterOf({
      name, in: 'query', ...(required ? { required } : {}), ...(schema['type'] === 'boolean' ? { allowEmptyValue: true } : {}),
    }, schema)),
    ...(takesIdempotencyKey(row) ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ...(row.versioned ? [{ $ref: `#/components/parameters/${row.method === 'PUT' ? 'IfMatch' : 'IfNoneMatch'}` }] : []),
    { $ref: '#/components/parameters/RequestId' },
  ];
};

const parameterOf = (where: Json, { description, ...schema }: JsonSchema): Json =>
  ({ ...where, ...(description === undefined ? {} : { description }), schema });

const responsesOf = (row: Route, { components, pascal }: { readonly components: Components; readonly pascal: string }): Json => {
  const codes = errorCodesOf(row);
  const statuses = new Set([...Object.keys(row.answers).map(Number), ...codes.map(statusOf)]);
  return Object.fromEntries([...statuses, ...(row.versioned && row.method === 'GET' ? [NOT_MODIFIED] : [])].sort((a, b) => a - b).map((status) => {
    if (status === NOT_MODIFIED) return [String(status), { description: 'The view that `If-None-Match` names is still the same.', headers: refsOf(['X-Request-Id', 'ETag']) }];
    const own = row.answers[status];
    const errors = codes.filter((code) => statusOf(code) === status);
    if (!own) return [String(status), errorResponse(errors, components)];
    const answer = components.schema(`${pascal}Answer`, components.output(own));
    const schema = errors.length === 0 ? answer : { anyOf: [answer, ...errors.map((code) => errorSchema(code, components))] };
    const example = EXAMPLES[row.operationId];
    const content = { schema, ...(example?.status === status ? { example: example.answer } : {}) };
    return [String(status), { description: DESCRIPTION[status] ?? 'Not now.', headers: headersOf(row, status), content: { [status === 200 ? row.onlyAs ?? 'application/json' : 'application/json']: content, ...(status === 200 ? otherContent(row) : {}) } }];
  }));
};

const NOT_MODIFIED = 304;
const otherContent = ({ alsoAs = [] }: Route): Json => Object.fromEntries(alsoAs.map((type) => [type, { schema: { type: 'string' } }]));

const DESCRIPTION: Readonly<Record<number, string>> = { 200: 'Done.', 201: 'Made.' };

const headersOf = (row: Route, status: number): Json => {
  const names = ['X-Request-Id'];
  if (status === 503 && !row.withoutRetryAfter) names.push('Retry-After');
  if (takesIdempotencyKey(row)) names.push('Idempotency-Replayed');
  if (row.body) names.push('Warning');
  if (row.versioned) names.push('ETag');
  if (row.deprecated) names.push('Deprecation', 'Sunset', 'Link');
  return refsOf(names);
};

const refsOf = (names: readonly string[]): Json => Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

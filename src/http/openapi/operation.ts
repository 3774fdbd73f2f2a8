import type { Route } from '../corridor/route.ts';
import { type Components, type JsonSchema, propertiesOf, withoutPageLinks } from './components.ts';
import { loadExamples } from './examples.ts';
import { takesIdempotencyKey } from './operation-errors.ts';
import { OPERATION_NOTES } from './operation-notes.ts';
import { responsesOf, schemaName } from './operation-responses.ts';

type Json = Readonly<Record<string, unknown>>;

export const operationOf = (row: Route, components: Components): Json => {
  const example = loadExamples()[row.operationId];
  return {
    operationId: row.operationId,
    summary: row.summary,
    description: withoutPageLinks(OPERATION_NOTES[row.operationId]?.trim() ?? row.summary),
    tags: [tagOf(row)],
    ...(row.deprecated ? { deprecated: true } : {}),
    security: securityOf(row),
    parameters: parametersOf(row, components),
    ...(row.media?.takes ? { requestBody: streamedBody(row.media.takes) } : {}),
    ...(row.body
      ? {
          requestBody: {
            required: requiresBody(components.input(row.body)),
            content: {
              'application/json': {
                schema: components.schema(`${schemaName(row)}Body`, components.input(row.body)),
                ...(example?.request === undefined ? {} : { example: example.request }),
              },
            },
          },
        }
      : {}),
    responses: responsesOf(row, components),
  };
};

const streamedBody = (types: readonly string[]): Json => ({
  required: true,
  content: Object.fromEntries(types.map((type) => [type, { schema: { type: 'string' } }])),
});

const CATALOGUE = {
  name: 'Catalogue',
  description: 'Instance types, volumes, features and clusters of this deployment.',
};

/** By first path segment, without `/admin`. */
export const TAGS: Readonly<
  Record<string, { readonly name: string; readonly description: string }>
> = {
  sandboxes: {
    name: 'Sandboxes',
    description: 'Claim a sandbox, read it, run commands in it, delete it.',
  },
  sandboxpools: { name: 'Pools', description: 'Sets of pre-started instances.' },
  'sandbox-templates': { name: 'Templates', description: 'Definitions from which pools are made.' },
  instancetypes: CATALOGUE,
  envs: {
    name: 'Envs',
    description: 'A template with overrides, and the pools that are created from it and sized.',
  },
  volumes: CATALOGUE,
  'feature-gates': CATALOGUE,
  clusters: CATALOGUE,
  managers: {
    name: 'Managers',
    description: 'Managers that a worker of a fleet accepts; for admin keys.',
  },
  statistics: { name: 'Statistics', description: 'Counts over all tenants; for admin keys.' },
  'api-keys': { name: 'API keys', description: 'Keys that authorize callers.' },
  quotas: { name: 'Quotas', description: 'Quotas and usage of a user.' },
  approvals: { name: 'Approvals', description: 'Decisions of people on requests.' },
  events: { name: 'Events', description: 'Events of sandboxes and pools.' },
  audit: { name: 'Audit', description: 'Records of changes; for admin keys.' },
  debug: { name: 'Debug', description: 'Internal state, for operators; for admin keys.' },
  healthz: { name: 'Health', description: 'Whether the daemon is running and can do its work.' },
  readyz: { name: 'Health', description: 'Whether the daemon is running and can do its work.' },
};

/** Returns the name of the tag that groups the operation. */
export const tagOf = ({ path }: Route): string => {
  const [, first = '', second = ''] = path.split('/');
  const tag = TAGS[first === 'admin' ? second : first];
  if (!tag) throw new Error(`no tag for ${path}`);
  return tag.name;
};

const SECURITY: Readonly<Record<Route['access'], readonly Json[]>> = {
  open: [],
  tenant: [{ ApiKeyAuth: [] }],
  admin: [{ AdminKeyAuth: [] }],
};

const securityOf = ({ access, sessions }: Route): readonly Json[] => [
  ...SECURITY[access],
  ...(sessions ? [{ ConsoleSession: [] }] : []),
];

const requiresBody = (schema: JsonSchema): boolean =>
  Array.isArray(schema['required']) && schema['required'].length > 0;

const parametersOf = (row: Route, components: Components): readonly Json[] => {
  const inPath = row.params
    ? Object.entries(propertiesOf(components.input(row.params.schema)))
    : [];
  const inQuery = row.query ? Object.entries(components.query(row.query)) : [];
  return [
    ...inPath.map(([name, schema]) => parameterOf({ name, in: 'path', required: true }, schema)),
    ...inQuery.map(([name, { schema, required }]) =>
      parameterOf(
        {
          name,
          in: 'query',
          ...(required ? { required } : {}),
          ...(schema['type'] === 'boolean' ? { allowEmptyValue: true } : {}),
          ...(schema['type'] === 'object' ? { style: 'deepObject', explode: true } : {}),
        },
        schema,
      ),
    ),
    ...(takesIdempotencyKey(row) ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ...(row.versioned
      ? [
          {
            $ref:
              row.method === 'PUT' || row.method === 'PATCH'
                ? '#/components/parameters/IfMatch'
                : '#/components/parameters/IfNoneMatch',
          },
        ]
      : []),
    ...(row.body ? [{ $ref: '#/components/parameters/Strict' }] : []),
    ...(streams(row) ? [{ $ref: '#/components/parameters/LastEventId' }] : []),
    ...(row.access === 'open'
      ? []
      : [
          { $ref: '#/components/parameters/SessionId' },
          { $ref: '#/components/parameters/WaitApprovalSeconds' },
        ]),
    { $ref: '#/components/parameters/RequestId' },
  ];
};

const streams = ({ media: { only, also = [] } = {} }: Route): boolean =>
  only === 'text/event-stream' || also.includes('text/event-stream');

const parameterOf = (where: Json, { description, ...schema }: JsonSchema): Json => ({
  ...where,
  ...(description === undefined ? {} : { description }),
  schema,
});

import { z } from 'zod';
import { type ErrorCode, statusOf } from '../reply/error-table.ts';
import type { Route } from '../corridor/route.ts';
import { type Components, type JsonSchema, withoutPageLinks } from './components.ts';
import { ERROR_NOTES } from './error-notes.ts';

/** Sorted by status; with those for key, query and body. */
export const errorCodesOf = (
  row: Pick<
    Route,
    'method' | 'access' | 'sessions' | 'body' | 'media' | 'query' | 'refusals' | 'effect' | 'params'
  >,
): readonly ErrorCode[] => {
  const codes = new Set<ErrorCode>(row.refusals);
  for (const code of OF_ANY) codes.add(code);
  if (row.access !== 'open' || row.sessions)
    codes.add('API_KEY_REQUIRED').add('INVALID_API_KEY').add('RATE_LIMITED');
  if (row.access !== 'open') for (const code of OF_HELD) codes.add(code);
  if (row.params?.names || asksForCluster(row))
    codes.add('CLUSTER_NOT_FOUND').add('CLUSTER_UNAVAILABLE');
  if (row.access === 'admin') codes.add('ADMIN_REQUIRED');
  if (row.body || row.method === 'POST')
    codes.add('PAYLOAD_TOO_LARGE').add('UNSUPPORTED_MEDIA_TYPE');
  if (row.media?.takes) codes.add('PAYLOAD_TOO_LARGE');
  if (takesIdempotencyKey(row)) codes.add('IDEMPOTENCY_IN_FLIGHT').add('IDEMPOTENCY_KEY_REUSED');
  return byStatus([...codes]);
};

const asksForCluster = ({ query }: Pick<Route, 'query'>): boolean =>
  query instanceof z.ZodObject && 'clusterID' in query.shape;

export const takesIdempotencyKey = ({
  method,
  effect,
}: Pick<Route, 'method' | 'effect'>): boolean => method === 'POST' && effect?.kind !== 'unkeyed';

const OF_HELD: readonly ErrorCode[] = [
  'APPROVAL_REQUIRED',
  'APPROVAL_DENIED',
  'CONFLICT',
  'IDEMPOTENCY_IN_FLIGHT',
  'TOO_MANY_WAITING',
];

/** Even of a malformed request. */
const OF_ANY: readonly ErrorCode[] = [
  'INVALID_ARGUMENT',
  'REQUEST_TIMEOUT',
  'REQUEST_HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
];

export const byStatus = (codes: readonly ErrorCode[]): readonly ErrorCode[] =>
  [...codes].sort((a, b) => statusOf(a) - statusOf(b));

export const errorResponse = (codes: readonly ErrorCode[], components: Components): JsonSchema => {
  const schemas = codes.map((code) => errorSchema(code, components));
  const schema =
    schemas.length === 1
      ? schemas[0]
      : {
          oneOf: schemas,
          discriminator: {
            propertyName: 'errorCode',
            mapping: Object.fromEntries(
              codes.map((code, index) => [code, schemas[index]?.['$ref']]),
            ),
          },
        };
  return components.response(codes.map(pascalCase).join('Or'), {
    description: codes
      .map((code) => `\`${code}\`: ${withoutPageLinks(ERROR_NOTES[code].when)}`)
      .join('\n\n'),
    headers: Object.fromEntries(
      headersOf(codes).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
    ),
    content: {
      'application/json': {
        schema,
        examples: Object.fromEntries(
          codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
        ),
      },
    },
  });
};

export const errorSchema = (code: ErrorCode, components: Components): JsonSchema => {
  const { when, detail } = ERROR_NOTES[code];
  return components.schema(`${pascalCase(code)}Error`, {
    type: 'object',
    description: withoutPageLinks(when),
    properties: {
      error: { type: 'string', description: 'A message for people.' },
      errorCode: { type: 'string', const: code },
      ...(detail ? { detail: components.output(detail) } : {}),
    },
    required: [
      'error',
      'errorCode',
      ...(detail && !detail.safeParse(undefined).success ? ['detail'] : []),
    ],
  });
};

const headersOf = (codes: readonly ErrorCode[]): readonly string[] => {
  const status = codes[0] === undefined ? 500 : statusOf(codes[0]);
  if (status === 429 || status === 503) return ['X-Request-Id', 'Retry-After'];
  return status === 401 ? ['X-Request-Id', 'WWW-Authenticate'] : ['X-Request-Id'];
};

const pascalCase = (code: ErrorCode): string =>
  code
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('');

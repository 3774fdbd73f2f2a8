import { type ErrorCode, statusOf } from '../reply/error-table.ts';
import type { Route } from '../corridor/route.ts';
import type { Components, JsonSchema } from './components.ts';
import { loadExamples } from './examples.ts';
import {
  errorCodesOf,
  errorResponse,
  errorSchema,
  takesIdempotencyKey,
} from './operation-errors.ts';

type Json = Readonly<Record<string, unknown>>;

export const responsesOf = (row: Route, components: Components): Json => {
  const codes = errorCodesOf(row);
  const responses = new Map<number, JsonSchema>();
  for (const status of new Set(codes.map(statusOf)))
    responses.set(
      status,
      errorResponse(
        codes.filter((code) => statusOf(code) === status),
        components,
      ),
    );
  for (const status of Object.keys(row.answers).map(Number)) {
    responses.set(
      status,
      ownResponse(row, {
        status,
        errors: codes.filter((code) => statusOf(code) === status),
        components,
      }),
    );
  }
  if (row.method === 'GET' && (row.versioned || isContent(row))) {
    responses.set(304, {
      description: 'The view still has the version that `If-None-Match` names.',
      headers: headerRefs(['X-Request-Id', 'ETag']),
    });
  }
  return Object.fromEntries(
    [...responses]
      .sort(([a], [b]) => a - b)
      .map(([status, response]) => [String(status), response]),
  );
};

export const schemaName = ({ operationId }: Route): string =>
  operationId.charAt(0).toUpperCase() + operationId.slice(1);

interface Own {
  readonly status: number;
  readonly errors: readonly ErrorCode[];
  readonly components: Components;
}

/** If errors share its status, the body is any of them. */
const ownResponse = (row: Route, { status, errors, components }: Own): JsonSchema => {
  const { [status]: own } = row.answers;
  if (!own) throw new Error(`${row.operationId} has no answer ${status}`);
  const answer = components.schema(`${schemaName(row)}Answer`, components.output(own));
  const schema =
    errors.length === 0
      ? answer
      : { anyOf: [answer, ...errors.map((code) => errorSchema(code, components))] };
  const example = loadExamples()[row.operationId];
  const content = { schema, ...(example?.status === status ? { example: example.answer } : {}) };
  const others = status === 200 || status === 201 ? (row.media?.also ?? []) : [];
  return {
    description: DESCRIPTION[status] ?? 'Not now.',
    headers: headerRefs(headersOf(row, status)),
    content: {
      [status < 300 ? (row.media?.only ?? 'application/json') : 'application/json']: content,
      ...Object.fromEntries(others.map((type) => [type, { schema: { type: 'string' } }])),
    },
  };
};

/** Bytes have their own entity tag. */
const isContent = ({ media }: Route): boolean => media?.only === 'application/octet-stream';

const DESCRIPTION: Readonly<Record<number, string>> = {
  200: 'Done.',
  201: 'Created.',
  206: 'The part that `Range` names.',
};

/** They name the source of another cluster's answer. */
const ROUTE_HEADERS = ['Sandpool-Cluster', 'Sandpool-Link'];

/** Their 503 is a normal answer. */
const WITHOUT_RETRY_AFTER: ReadonlySet<string> = new Set(['isReady']);

const headersOf = (row: Route, status: number): readonly string[] => [
  'X-Request-Id',
  ...(status === 503 && !WITHOUT_RETRY_AFTER.has(row.operationId) ? ['Retry-After'] : []),
  ...(takesIdempotencyKey(row) ? ['Idempotency-Replayed'] : []),
  ...(row.body || row.access !== 'open' ? ['Warning'] : []),
  ...(row.versioned ? ['ETag'] : []),
  ...(row.params?.names || row.operationId === 'claimSandbox' ? ROUTE_HEADERS : []),
  ...(row.deprecated ? ['Deprecation', 'Sunset', 'Link'] : []),
];

const headerRefs = (names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

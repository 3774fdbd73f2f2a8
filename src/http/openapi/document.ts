import { statusOf } from '../reply/error-table.ts';
import type { Route } from '../corridor/route.ts';
import { Components } from './components.ts';
import { ERROR_NOTES } from './error-notes.ts';
import { byStatus, errorCodesOf } from './operation-errors.ts';
import { operationOf, TAGS } from './operation.ts';

type Json = Readonly<Record<string, unknown>>;

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: Json;
  readonly servers: readonly Json[];
  readonly tags: readonly Json[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: Json;
}

/**
 * The API as an OpenAPI 3.1 document: every operation of the rows, with all it takes, answers and
 * refuses.
 */
export const openApiDocument = (rows: readonly Route[]): OpenApiDocument => {
  const shared = new Components();
  const paths: Record<string, Record<string, Json>> = {};
  for (const row of rows)
    (paths[row.path] ??= {})[row.method.toLowerCase()] = operationOf(row, shared);
  const used = new Set(rows.map(({ path }) => path.replace(/^\/admin/, '').split('/')[1] ?? ''));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sandpool',
      version: API_VERSION,
      summary: 'Hands out isolated, pre-started sandboxes to tenants.',
      description: ABOUT,
      license: LICENSE,
    },
    servers: [
      { url: '/', description: 'This daemon.' },
      { url: '/v1', description: 'The same, with the version in the path.' },
    ],
    tags: [
      ...new Map(
        Object.entries(TAGS)
          .filter(([part]) => used.has(part))
          .map(([, tag]) => [tag.name, tag]),
      ).values(),
    ],
    paths,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      parameters: PARAMETERS,
      headers: HEADERS,
      ...shared.named(),
      examples: Object.fromEntries(
        byStatus([...new Set(rows.flatMap(errorCodesOf))]).map((code) => [
          code,
          { summary: `${statusOf(code)} ${code}`, value: ERROR_NOTES[code].example },
        ]),
      ),
    },
  };
};

/** Version of the API, which is not the daemon's own. */
const API_VERSION = '1.0.0';

const LICENSE = { name: 'Apache License 2.0', identifier: 'Apache-2.0' };

const ABOUT = `
Bodies are JSON objects in UTF-8, at most 1 MiB. Unknown fields of a body are let pass, and each
is named in a \`Warning\` header; known ones are checked. Fields without a value are left out of
answers, and answers may get further fields later. Timestamps are ISO 8601 in UTC, durations text
such as \`90s\`, \`30m\`, \`1h30m\`. Every error has the body \`{"error": "…", "errorCode": "…",
"detail": {…}}\`. The terminal, a WebSocket, and the endpoints of sandboxes, whose answers are
the sandboxes' own, are told of in docs/api.md.`.trim();

const KEY_HEADER = { type: 'apiKey', in: 'header', name: 'SERVICE-API-KEY' };
const SECURITY_SCHEMES: Json = {
  ApiKeyAuth: {
    ...KEY_HEADER,
    description:
      'The key of a tenant: of a user of a team. `Authorization: Bearer KEY` says the same, but ' +
      'not to endpoints of sandboxes.',
  },
  AdminKeyAuth: {
    ...KEY_HEADER,
    description: 'The same header with a key that has the role `admin`.',
  },
  ConsoleSession: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-sandpool-session',
    description: 'The session of a person who is logged in at the console.',
  },
};

const PARAMETERS: Json = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Made up anew for each thing to be done: its repetitions within 24 hours get the ' +
      "first one's answer, if that was 2xx.",
    schema: { type: 'string', pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]{0,253}[\\x21-\\x7e])?$' },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description:
      'An `ETag`, or several: while the view is still that one, the answer is 304 without a body.',
    schema: { type: 'string' },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description:
      'An `ETag`, or several: the change is made only while the revision is that one, else 412.',
    schema: { type: 'string' },
  },
  LastEventId: {
    name: 'Last-Event-ID',
    in: 'header',
    description: 'Where a stream of events goes on: the id of the last one that came.',
    schema: { type: 'string', maxLength: 256 },
  },
  SessionId: {
    name: 'X-Session-Id',
    in: 'header',
    description: 'The session of an agent. What waits for a person may be approved for all of one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
  Strict: {
    name: 'strict',
    in: 'query',
    description:
      'Refuses an unknown field of the body with 400, which names it, in place of a `Warning`.',
    schema: { type: 'boolean', default: false },
    allowEmptyValue: true,
  },
  WaitApprovalSeconds: {
    name: 'waitApprovalSeconds',
    in: 'query',
    description: 'Waits so long for the decision where a person must approve the request first.',
    schema: { type: 'integer', minimum: 0, maximum: 300 },
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description:
      'An id for the answer and the log. Anything else than the pattern is ignored, and ' +
      'an id is made up.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
};

const text = { type: 'string' };
const HEADERS: Readonly<Record<string, Json>> = {
  'X-Request-Id': {
    description: "The request's id, which the log has too.",
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
  'Retry-After': {
    description: 'Whole seconds to wait before the next try.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
  'WWW-Authenticate': {
    description: 'The scheme and the header of the key.',
    required: true,
    schema: text,
  },
  'Idempotency-Replayed': {
    description: 'The answer is that of an earlier request with this `Idempotency-Key`.',
    schema: { const: 'true' },
  },
  Warning: {
    description:
      'One for each unknown field of the body and parameter of the query, 16 of each at ' +
      'most; and one where the API key ends within 14 days.',
    schema: text,
  },
  Deprecation: {
    description: 'Since when the operation is deprecated (RFC 9745).',
    required: true,
    schema: { type: 'string', pattern: '^@\\d+$' },
  },
  Sunset: {
    description: 'When the operation is to go (RFC 8594); absent while that is not settled.',
    schema: text,
  },
  ETag: {
    description: 'The revision and a hash of the view.',
    required: true,
    schema: { type: 'string', pattern: '^"[^"]+-[0-9a-f]{16}"$' },
  },
  'Sandpool-Cluster': {
    description: "The cluster that answered, where a fleet's manager passed the request on to it.",
    schema: text,
  },
  'Sandpool-Link': {
    description: 'The link that it was passed on over; `GET /clusters` shows those there are.',
    schema: text,
  },
  Link: {
    description: 'What replaces it, as `rel="successor-version"`.',
    required: true,
    schema: text,
  },
};

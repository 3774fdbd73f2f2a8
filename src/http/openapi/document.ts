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

/** Builds the OpenAPI 3.1 document, with the input, answers and errors of every row. */
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
      { url: '/v1', description: 'The same API, with the version in the path.' },
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

/** Independent of the daemon's version. */
const API_VERSION = '1.0.0';

const LICENSE = { name: 'Apache License 2.0', identifier: 'Apache-2.0' };

const ABOUT = `
Bodies are JSON objects in UTF-8, at most 1 MiB. Unknown fields of a body are ignored, and each is
named in a \`Warning\` header; known fields are checked. Answers omit fields without a value, and
may get more fields later. Timestamps are ISO 8601 in UTC. Durations are text such as \`90s\`,
\`30m\`, \`1h30m\`. Every error has the body \`{"error": "…", "errorCode": "…", "detail": {…}}\`.
docs/reference/api describes the terminal, which is a WebSocket, and the endpoints of sandboxes,
whose answers come from the sandboxes themselves.`.trim();

const KEY_HEADER = { type: 'apiKey', in: 'header', name: 'SERVICE-API-KEY' };
const SECURITY_SCHEMES: Json = {
  ApiKeyAuth: {
    ...KEY_HEADER,
    description:
      'The key of a tenant: of a user of a team. `Authorization: Bearer KEY` is equivalent, ' +
      'except for endpoints of sandboxes.',
  },
  AdminKeyAuth: {
    ...KEY_HEADER,
    description: 'The same header with a key that has the role `admin`.',
  },
  ConsoleSession: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-sandpool-session',
    description: 'The session of a person who is logged in to the console.',
  },
};

const PARAMETERS: Json = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'A new value for each operation. A request with the same value within 24 hours gets ' +
      'the first answer, if that was 2xx.',
    schema: { type: 'string', pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]{0,253}[\\x21-\\x7e])?$' },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    description:
      'One or several `ETag` values. If the view still has one of them, the answer is 304 ' +
      'without a body.',
    schema: { type: 'string' },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description:
      'One or several `ETag` values. The change is made only if the revision is one of them; ' +
      'otherwise the answer is 412.',
    schema: { type: 'string' },
  },
  LastEventId: {
    name: 'Last-Event-ID',
    in: 'header',
    description:
      'The id of the last event that the client received; the stream continues after it.',
    schema: { type: 'string', maxLength: 256 },
  },
  SessionId: {
    name: 'X-Session-Id',
    in: 'header',
    description:
      'The session of an agent. A person may approve all similar requests of one session at once.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
  Strict: {
    name: 'strict',
    in: 'query',
    description:
      'An unknown field of the body is refused with 400, which names the field, instead of a ' +
      '`Warning`.',
    schema: { type: 'boolean', default: false },
    allowEmptyValue: true,
  },
  WaitApprovalSeconds: {
    name: 'waitApprovalSeconds',
    in: 'query',
    description: 'How long to wait for the decision if a person must approve the request first.',
    schema: { type: 'integer', minimum: 0, maximum: 300 },
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    description:
      'An id for the answer and the log. A value that does not match the pattern is ignored, ' +
      'and an id is generated.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
};

const text = { type: 'string' };
const HEADERS: Readonly<Record<string, Json>> = {
  'X-Request-Id': {
    description: "The request's id, which is also in the log.",
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
  'Retry-After': {
    description: 'Whole seconds to wait before the next attempt.',
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
      'One for each unknown field of the body and parameter of the query, at most 16 of ' +
      'each; and one if the API key expires within 14 days.',
    schema: text,
  },
  Deprecation: {
    description: 'When the operation was deprecated (RFC 9745).',
    required: true,
    schema: { type: 'string', pattern: '^@\\d+$' },
  },
  Sunset: {
    description: 'When the operation will be removed (RFC 8594); absent if no date is set.',
    schema: text,
  },
  ETag: {
    description: 'The revision and a hash of the view.',
    required: true,
    schema: { type: 'string', pattern: '^"[^"]+-[0-9a-f]{16}"$' },
  },
  'Sandpool-Cluster': {
    description: "The cluster that answered, if a fleet's manager forwarded the request.",
    schema: text,
  },
  'Sandpool-Link': {
    description: 'The link over which the request was forwarded; `GET /clusters` shows the links.',
    schema: text,
  },
  Link: {
    description: 'The operation that replaces it, as `rel="successor-version"`.',
    required: true,
    schema: text,
  },
};

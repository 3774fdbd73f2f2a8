import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { routesOf } from '../../../src/http/server/app.ts';
import { openApiDocument, type OpenApiDocument } from '../../../src/http/openapi/document.ts';
import type { Operations } from '../../../src/services/operations.ts';
import type { HttpAnswer } from './http-client.ts';

// handlers use operations only for requests
const NO_OPERATIONS = {} as Operations;

export const document: OpenApiDocument = openApiDocument(routesOf(NO_OPERATIONS));

export type Json = Readonly<Record<string, unknown>>;

/** Follows references on the way. */
export const at = (pointer: string): Json | undefined => {
  let value: unknown = document;
  for (const part of pointer.split('/').slice(1))
    value = followed(value)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')];
  return followed(value);
};

const followed = (value: unknown): Json | undefined => {
  if (!isObject(value)) return undefined;
  return typeof value['$ref'] === 'string' ? at(value['$ref'].slice(1)) : value;
};

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export interface DocumentedOperation {
  readonly method: string;
  readonly path: string;
  readonly pointer: string;
  readonly operation: Json;
}

export const documentedOperations: readonly DocumentedOperation[] = Object.entries(
  document.paths,
).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    operation,
    pointer: `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}`,
  })),
);

/**
 * Throws if the document does not declare the answer: status, body, fields or required headers.
 * Requests without an operation must get 404, 405 or an early refusal; those without a target 400
 * or 503.
 */
export const checkDocumented = (method: string, target: string, answer: HttpAnswer): void => {
  const path = pathOf(method, target);
  if (path !== undefined && PAGES.test(path)) return;
  const found =
    path === undefined ? undefined : operationAt(method === 'HEAD' ? 'GET' : method, path);
  const problem = found
    ? problemWith(found, answer, method)
    : strangerProblem(answer, path === undefined ? NO_TARGET_STATUSES : STRANGER_STATUSES);
  if (problem !== undefined)
    throw new Error(
      `${method} ${target} answered what the document does not declare: ${answer.status} ${problem}\n${answer.text.slice(0, 2_000)}`,
    );
};

/** Without its base (RFC 9112, 3.2). Undefined if invalid, such as one with a fragment. */
export const pathOf = (method: string, target: string): string | undefined => {
  if (target === '*') return method === 'OPTIONS' ? target : undefined;
  const [whole, ofAbsolute, ofOrigin] = TARGET.exec(target) ?? [];
  return whole === undefined
    ? undefined
    : (ofOrigin ?? ofAbsolute ?? '/').replace(/^\/v1(?=\/)/, '');
};

const TARGET =
  /^(?:https?:\/\/(?:\[[\d.:a-f]{2,45}\]|[\w.-]{1,253})(?::\d{1,5})?(\/[^?#]*)?|(\/[^?#]*))(?:\?[^#]*)?$/i;

/** The document, pages, and sandboxes' own answers. */
export const PAGES =
  /^\/(|openapi\.json|console(\/.*)?|docs(\/.*)?|sandboxes\/[^/]+\/endpoints\/.*)$/;

const patterns = documentedOperations.map((operation) => ({
  ...operation,
  pattern: new RegExp(
    `^${operation.path.replaceAll(/[.]/g, '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`,
  ),
}));

export const operationAt = (method: string, path: string): DocumentedOperation | undefined =>
  patterns.find((operation) => operation.method === method && operation.path === path) ??
  patterns.find((operation) => operation.method === method && operation.pattern.test(path));

const problemWith = (
  { pointer }: DocumentedOperation,
  { status, headers, text }: HttpAnswer,
  method: string,
): string | undefined => {
  const response = at(`${pointer}/responses/${status}`);
  if (!response) return 'is not declared';
  const declared = isObject(response['headers']) ? response['headers'] : {};
  for (const name of Object.keys(declared)) {
    const header = at(`/components/headers/${name}`);
    const value = headers[name.toLowerCase()];
    if (header?.['required'] === true && value === undefined) return `lacks the header ${name}`;
    if (
      value !== undefined &&
      isObject(header?.['schema']) &&
      !validatorOf(header['schema'])(header['schema']['type'] === 'integer' ? Number(value) : value)
    )
      return `has the header ${name}: ${value}`;
  }
  if (method === 'HEAD') return text === '' ? undefined : 'has a body';
  const content = response['content'];
  const type = (headers['content-type'] ?? '').split(';')[0] ?? '';
  if (!isObject(content)) return text === '' ? undefined : 'has a body';
  const media = content[type];
  if (!isObject(media)) return `has the content type ${type}`;
  return type === 'application/json' && isObject(media['schema'])
    ? bodyProblem(media['schema'], text)
    : undefined;
};

const STRANGER_STATUSES: ReadonlySet<number> = new Set([
  400, 401, 404, 405, 408, 413, 431, 500, 503,
]);

/** A sender's fault is never 500. */
const NO_TARGET_STATUSES: ReadonlySet<number> = new Set([400, 503]);

const strangerProblem = (
  { status, text }: HttpAnswer,
  allowed: ReadonlySet<number>,
): string | undefined =>
  allowed.has(status)
    ? text === ''
      ? undefined
      : bodyProblem(ANY_ERROR, text)
    : 'where there is no operation';

const ANY_ERROR: Json = {
  type: 'object',
  required: ['error', 'errorCode'],
  properties: {
    error: { type: 'string', minLength: 1 },
    errorCode: { type: 'string', pattern: '^[A-Z][A-Z_]+$' },
    detail: {},
  },
};

const bodyProblem = (schema: Json, text: string): string | undefined => {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'is no JSON';
  }
  const validate = validatorOf(schema);
  return validate(body) ? undefined : `does not fit: ${ajv.errorsText(validate.errors)}`;
};

const SHARED = 'document';
/** Unknown keywords and formats are faults of the document too. */
const ajv = addFormats.default(
  new Ajv2020({
    strict: true,
    strictRequired: false,
    allowUnionTypes: true,
    allErrors: false,
    discriminator: false,
    keywords: ['discriminator'],
  }),
);
const validators = {
  closed: new Map<Json, ValidateFunction>(),
  open: new Map<Json, ValidateFunction>(),
};

/** Closed: undeclared fields are faults. */
export const validatorOf = (schema: Json, as: 'closed' | 'open' = 'closed'): ValidateFunction => {
  const known = validators[as].get(schema);
  if (known) return known;
  const validate = ajv.compile(as === 'closed' ? asObject(closed(schema)) : schema);
  validators[as].set(schema, validate);
  return validate;
};

const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed);
  if (!isObject(value)) return value;
  const result: Record<string, unknown> = Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string'
        ? inner.replace('#/components/schemas/', `${SHARED}#/$defs/`)
        : closed(inner),
    ]),
  );
  if (isObject(value['properties']) && value['additionalProperties'] === undefined)
    result['additionalProperties'] = false;
  return result;
};

const asObject = (value: unknown): Json => (isObject(value) ? value : {});
/** Added once, so that each is compiled once. */
ajv.addSchema({ $id: SHARED, $defs: closed(document.components['schemas']) });

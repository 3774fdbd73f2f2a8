import { compile } from 'json-schema-to-typescript';
import { fileURLToPath } from 'node:url';
import { routesOf } from '../src/http/server/app.ts';
import { openApiDocument, type OpenApiDocument } from '../src/http/openapi/document.ts';
import type { Operations } from '../src/services/operations.ts';
import { type GeneratedFiles, writeFiles } from './generated-files.ts';

type Json = Readonly<Record<string, unknown>>;

const FILE = 'src/cli/client/generated/api.ts';
// a row calls its operation when it handles a request, not before
const NO_OPERATIONS = {} as Operations;

export const clientTypes = async (): Promise<GeneratedFiles> => {
  const document = openApiDocument(routesOf(NO_OPERATIONS));
  const operations = operationsOf(document);
  const types = await compile(typesSchema(document, operations), 'Operations', {
    additionalProperties: false,
    bannerComment: '',
    enableConstEnums: false,
    ignoreMinAndMaxItems: true,
    style: { singleQuote: true, printWidth: 140 },
  });
  const table = operations.map(
    ({ id, method, path }) => `  ${id}: { method: '${method}', path: '${path}' },`,
  );
  const text = [
    '/** Written by script/client-types.ts from the OpenAPI document. The shapes and the path of each operation. */',
    types.trim(),
    '',
    'export const OPERATIONS = {',
    ...table,
    '} as const;',
    '',
  ].join('\n');
  return new Map([[FILE, text]]);
};

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly schema: Json;
}

const operationsOf = (document: OpenApiDocument): readonly Operation[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: String(operation['operationId']),
      method: method.toUpperCase(),
      path,
      schema: operationSchema(operation),
    })),
  );

const operationSchema = (operation: Json): Json => {
  const params = parametersIn(operation, 'path');
  const query = parametersIn(operation, 'query');
  const body = schemaIn(operation['requestBody']);
  const properties = {
    ...(params ? { params } : {}),
    ...(query ? { query } : {}),
    ...(body ? { body } : {}),
    answer: successOf(operation),
  };
  const required = [
    'answer',
    ...(params ? ['params'] : []),
    ...(isJson(operation['requestBody']) && operation['requestBody']['required'] === true
      ? ['body']
      : []),
  ];
  return {
    type: 'object',
    description: String(operation['summary']),
    properties,
    required,
    additionalProperties: false,
  };
};

const parametersIn = (operation: Json, where: 'path' | 'query'): Json | undefined => {
  const all = Array.isArray(operation['parameters'])
    ? operation['parameters'].filter(isJson).filter((parameter) => parameter['in'] === where)
    : [];
  if (all.length === 0) return undefined;
  return {
    type: 'object',
    properties: Object.fromEntries(
      all.map(({ name, schema, description }) => [
        String(name),
        { ...(isJson(schema) ? withoutDefault(schema) : {}), description },
      ]),
    ),
    required: all
      .filter((parameter) => parameter['required'] === true)
      .map(({ name }) => String(name)),
    additionalProperties: false,
  };
};

const successOf = (operation: Json): Json => {
  const responses = isJson(operation['responses']) ? operation['responses'] : {};
  const status = Object.keys(responses).find((each) => each.startsWith('2'));
  const schema = status === undefined ? undefined : schemaIn(responses[status]);
  if (!schema) throw new Error(`${String(operation['operationId'])} answers no JSON`);
  return schema;
};

const schemaIn = (holder: unknown): Json | undefined => {
  const content = isJson(holder) ? holder['content'] : undefined;
  const media = isJson(content)
    ? (content['application/json'] ??
      content['text/event-stream'] ??
      content['application/octet-stream'])
    : undefined;
  return isJson(media) && isJson(media['schema']) ? media['schema'] : undefined;
};

const typesSchema = (document: OpenApiDocument, operations: readonly Operation[]): Json => {
  const schema = {
    type: 'object',
    description: 'Each operation by its operationId.',
    properties: Object.fromEntries(operations.map(({ id, schema: own }) => [id, own])),
    required: operations.map(({ id }) => id),
    additionalProperties: false,
    $defs: document.components['schemas'],
  };
  return JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/')) as Json;
};

/** `required` says already that it may be left out. */
const withoutDefault = ({ default: _default, ...schema }: Json): Json => schema;
const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFiles(await clientTypes());

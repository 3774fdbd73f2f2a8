/**
 * Makes the pages of docs/reference/api from the route rows, their schemas and the notes. An
 * operation without a note is a fault.
 */
import { z } from 'zod';
import { routesOf } from '../src/http/server/app.ts';
import { type ErrorCode, statusOf } from '../src/http/reply/error-table.ts';
import { ERROR_NOTES } from '../src/http/openapi/error-notes.ts';
import { byStatus, errorCodesOf } from '../src/http/openapi/operation-errors.ts';
import { tagOf } from '../src/http/openapi/operation.ts';
import { OPERATION_NOTES } from '../src/http/openapi/operation-notes.ts';
import type { Route } from '../src/http/corridor/route.ts';
import type { Operations } from '../src/services/operations.ts';
import { conventions, endpoints, errorBody, terminal } from './api-docs-prose.ts';

type Schema = z.core.JSONSchema.BaseSchema;
interface Field {
  readonly schema: Schema;
  readonly required: boolean;
}
type Fields = ReadonlyMap<string, Field>;

// a row calls its operation when it handles a request, not before
const NO_OPERATIONS = {} as Operations;

const FOLDER = 'docs/reference/api';
const WRITTEN =
  '<!-- Written by script/api-docs.ts from the route rows, their schemas and the notes in src/http/openapi. -->';

/** Returns the pages by path: conventions and errors, one page for each resource, and the shapes. */
export const apiPages = (): ReadonlyMap<string, string> => {
  const rows = routesOf(NO_OPERATIONS);
  const resources = byResource(rows);
  const pages = new Map<string, readonly string[]>([
    ['README.md', indexText(resources)],
    ...[...resources].map(
      ([name, own]) => [fileOf(name), [`# ${name}`, ...own.map(operationText)]] as const,
    ),
    [
      'shapes.md',
      ['# Shapes', ...[...shapesOf(rows)].map(([name, schema]) => shapeText(name, schema))],
    ],
    ['terminal.md', [terminal.trim()]],
    ['endpoints.md', [endpoints.trim()]],
  ]);
  const linked = linksBetween(pages);
  return new Map(
    [...pages].map(([file, parts]) => [
      `${FOLDER}/${file}`,
      `${linked(file, [WRITTEN, ...parts].join('\n\n'))}\n`,
    ]),
  );
};

/** Processes and files have pages of their own, since the page on sandboxes would be too long. */
const resourceOf = (row: Route): string => {
  if (row.path.includes('/processes')) return 'Processes';
  return row.path.includes('/files') ? 'Files' : tagOf(row);
};

const byResource = (rows: readonly Route[]): ReadonlyMap<string, readonly Route[]> => {
  const names = new Set(rows.map(resourceOf));
  return new Map([...names].map((name) => [name, rows.filter((row) => resourceOf(row) === name)]));
};

const fileOf = (resource: string): string => `${anchorOf(resource)}.md`;

const indexText = (resources: ReadonlyMap<string, readonly Route[]>): readonly string[] => [
  conventions.trim(),
  errorBody.trim(),
  '## Operations',
  tableOf(
    ['operation', 'operationId', 'access', ''],
    [...resources.values()]
      .flat()
      .map((row) => [linkTo(nameOf(row)), `\`${row.operationId}\``, row.access, row.summary]),
  ),
  '## Error codes',
  tableOf(
    ['status', 'errorCode', 'when'],
    byStatus(Object.keys(ERROR_NOTES) as ErrorCode[]).map((code) => [
      String(statusOf(code)),
      `\`${code}\``,
      ERROR_NOTES[code].when,
    ]),
  ),
];

/**
 * Returns a function that completes the links of one page. `#heading` gets the file that has the
 * heading. Links to other pages are relative to docs/ in the sources.
 */
const linksBetween = (pages: ReadonlyMap<string, readonly string[]>) => {
  const files = new Map(
    [...pages].flatMap(([file, parts]) =>
      parts
        .flatMap((part) => [...part.matchAll(/^#+ (.+)$/gm)])
        .map(([, heading = '']) => [anchorOf(heading), file] as const),
    ),
  );
  return (page: string, text: string): string =>
    text.replaceAll(/\]\((#[^)]+|[^):#]+\.md[^)]*)\)/g, (_whole, link: string) => {
      if (!link.startsWith('#')) return `](../../${link})`;
      const file = files.get(link.slice(1)) ?? page;
      return `](${file === page ? '' : file}${link})`;
    });
};

const linkTo = (operation: string): string => `[\`${operation}\`](#${anchorOf(operation)})`;

const operationText = (row: Route): string => {
  const note = OPERATION_NOTES[row.operationId];
  if (note === undefined)
    throw new Error(`no note on ${row.operationId} (src/http/openapi/operation-notes.ts)`);
  return [
    `## ${nameOf(row)}`,
    `${row.summary}. ${ACCESS[row.access]}${row.deprecated ? ` Deprecated: ${linkTo(`${row.deprecated.method} ${row.deprecated.successor}`)} replaces it; it goes on working.` : ''}`,
    note.trim(),
    ...(row.query ? [inputText('Query', fieldsOf(row.query, 'query'))] : []),
    ...(row.body ? [inputText('Body', fieldsOf(row.body, 'input'))] : []),
    ...answersText(row),
    `Refuses with ${errorCodesOf(row)
      .filter((code) => !OF_ANY.has(code) || row.refusals.some((own) => own === code))
      .map((code) => `${statusOf(code)} \`${code}\``)
      .join(', ')}.`,
  ].join('\n\n');
};

/** The page names them once, under errors. */
const OF_ANY: ReadonlySet<ErrorCode> = new Set([
  'REQUEST_TIMEOUT',
  'REQUEST_HEADERS_TOO_LARGE',
  'INTERNAL',
]);

const ACCESS: Readonly<Record<Route['access'], string>> = {
  open: 'Needs no key.',
  tenant: 'Needs a key.',
  admin: 'Needs a key with the admin role.',
};

const inputText = (what: string, fields: Fields): string =>
  tableOf(
    [what, 'type', 'default', ''],
    [...fields].map(([field, { schema, required }]) => [
      `\`${field}\``,
      typeOf(schema),
      required ? 'required' : defaultOf(schema),
      noteOf(schema),
    ]),
  );

const answersText = (row: Route): readonly string[] => {
  const all = Object.entries(row.answers);
  const [first] = all;
  if (!first || all.some(([, schema]) => schema !== first[1]))
    throw new Error(`${nameOf(row)}: this page shows one answer only`);
  return [
    tableOf(
      [`Answer ${all.map(([status]) => status).join(' or ')}`, 'type', ''],
      [...fieldsOf(first[1], 'output')].map(([field, { schema, required }]) => [
        `\`${field}\``,
        `${typeOf(schema)}${required ? '' : ', may be absent'}`,
        noteOf(schema),
      ]),
    ),
  ];
};

const shapesOf = (rows: readonly Route[]): ReadonlyMap<string, Schema> =>
  new Map(
    rows
      .flatMap(({ answers }) => Object.values(answers))
      .flatMap((answer) => {
        const { $ref, $defs = {} } = z.toJSONSchema(answer, {
          io: 'output',
          unrepresentable: 'any',
        });
        return Object.entries($defs).filter(([name]) => $ref !== refTo(name));
      }),
  );

const shapeText = (name: string, schema: Schema): string =>
  [
    `## ${name}`,
    ...(schema.description === undefined ? [] : [schema.description]),
    tableOf(
      ['field', 'type', ''],
      [...flattened(schema)].map(([field, { schema: type, required }]) => [
        `\`${field}\``,
        `${typeOf(type)}${required ? '' : ', may be absent'}`,
        noteOf(type),
      ]),
    ),
  ].join('\n\n');

/** The input; for a query, the meaning of its texts, if JSON schema has it. */
const fieldsOf = (schema: z.ZodType, as: 'input' | 'output' | 'query'): Fields => {
  const json = (io: 'input' | 'output') => {
    const { $ref, $defs, ...own } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
    return flattened($ref === undefined ? own : ($defs?.[$ref.slice(REF.length)] ?? own));
  };
  if (as !== 'query') return json(as);
  const read = json('output');
  return new Map(
    [...json('input')].map(([field, { schema: text, required }]) => {
      const meant = read.get(field)?.schema;
      return [field, { schema: meant?.type === undefined ? text : meant, required }];
    }),
  );
};

const REF = '#/$defs/';
const refTo = (name: string): string => `${REF}${name}`;

/** `a.b` in an object, `a[].b` in a list's objects, `a.*.b` in a map's. */
const flattened = (schema: Schema): Fields => {
  const fields = new Map<string, Field>();
  const add = (path: string, of: Schema, required: boolean): void => {
    const known = fields.get(path);
    if (known === undefined) fields.set(path, { schema: of, required });
    else if (typeOf(known.schema) !== typeOf(of))
      fields.set(path, {
        schema: { ...known.schema, anyOf: [known.schema, of] },
        required: known.required && required,
      });
  };
  const enter = (path: string, within: Schema): void => {
    for (const either of (within.anyOf ?? within.oneOf ?? []).filter(isSchema)) enter(path, either);
    if (isSchema(within.items)) enter(`${path}[]`, within.items);
    if (isSchema(within.additionalProperties)) enter(`${path}.*`, within.additionalProperties);
    for (const [name, of] of Object.entries(within.properties ?? {})) {
      if (!isSchema(of)) continue;
      const below = path === '' ? name : `${path}.${name}`;
      add(below, of, within.required?.includes(name) ?? false);
      enter(below, of);
    }
  };
  enter('', schema);
  return fields;
};

const typeOf = (schema: Schema): string => {
  if (schema.$ref !== undefined)
    return `[${schema.$ref.slice(REF.length)}](#${anchorOf(schema.$ref.slice(REF.length))})`;
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(', ');
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return [...new Set(either.filter(isSchema).map(typeOf))].join(' or ');
  if (schema.type === 'array')
    return `array of ${schema.maxItems === undefined ? '' : `${schema.minItems ?? 0} to ${schema.maxItems} `}${isSchema(schema.items) ? typeOf(schema.items).replace(/^object$/, 'objects') : 'anything'}`;
  if (schema.type === 'object') return mapOrObject(schema);
  if (schema.type === 'string')
    return schema.format === 'date-time'
      ? 'timestamp'
      : `text${bounds(schema.minLength, schema.maxLength, ' characters')}`;
  if (schema.type === 'integer')
    return `integer${bounds(safe(schema.minimum), safe(schema.maximum), '', ' from ')}`;
  if (schema.type === 'boolean') return '`true`, `false`';
  return typeof schema.type === 'string' ? schema.type : 'anything';
};

const mapOrObject = ({ properties, additionalProperties: value }: Schema): string =>
  properties === undefined && isSchema(value) ? `map of text to ${typeOf(value)}` : 'object';

const bounds = (
  least: number | undefined,
  most: number | undefined,
  unit: string,
  from = ' of ',
): string => {
  if (most === undefined) return '';
  return least === undefined ? ` of at most ${most}${unit}` : `${from}${least} to ${most}${unit}`;
};

const safe = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && Math.abs(value) < Number.MAX_SAFE_INTEGER
    ? value
    : undefined;
const literal = (value: unknown): string => `\`${JSON.stringify(value)}\``;
const noteOf = ({ description = '' }: Schema): string => description.replaceAll('\n', ' ');
const defaultOf = ({ default: value }: Schema): string =>
  value === undefined ? '–' : literal(value);
const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9 _-]/g, '')
    .replaceAll(' ', '-');

const tableOf = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

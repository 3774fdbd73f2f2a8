/**
 * Writes docs/api.md from the route rows, their schemas and the error table. With `--check` it writes nothing and ends
 * with 1 where the page is stale. A field, an operation or a code without a note, or a note of nothing, is a fault.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { routesOf } from '../src/http/app.ts';
import { type ErrorCode, statusOf } from '../src/http/error-table.ts';
import type { Route } from '../src/http/route.ts';
import type { Operations } from '../src/operations/operations.ts';
import { operationNotes, pageFields, shapes, type OperationNotes } from './api-docs-fields.ts';
import { codeNotes, conventions, errorBody, terminal } from './api-docs-prose.ts';

type Schema = z.core.JSONSchema.BaseSchema;
type Fields = ReadonlyMap<string, { readonly schema: Schema; readonly required: boolean }>;

const PAGE = fileURLToPath(new URL('../docs/api.md', import.meta.url));
const NO_OPERATIONS = {} as Operations; // a row calls its operation when it handles a request, not before

/** The page as it should be. Throws where a note is missing or of nothing. */
export const apiPage = (): string => {
  const rows = routesOf(NO_OPERATIONS);
  const names = rows.map(nameOf);
  const strangers = Object.keys(operationNotes).filter((name) => !names.includes(name));
  if (strangers.length > 0) throw new Error(`notes on operations that are none: ${strangers.join(', ')}`);
  return [
    '<!-- Written by script/api-docs.ts from the route rows; its notes are in script/api-docs-*.ts. -->',
    conventions.trim(),
    '## Operations',
    tableOf(['operation', 'access', ''], rows.map((row) => [`[\`${nameOf(row)}\`](#${anchorOf(nameOf(row))})`, row.access, row.summary])),
    ...rows.map(operationText),
    '## Shapes',
    ...Object.keys(shapes).map(shapeText),
    terminal.trim(),
    errorBody.trim(),
    tableOf(['status', 'errorCode', 'when'], codesByStatus(Object.keys(codeNotes) as ErrorCode[]).map((code) => [String(statusOf(code)), `\`${code}\``, codeNotes[code]])),
  ].join('\n\n') + '\n';
};

export const apiPageIsFresh = (): boolean => readFileSync(PAGE, 'utf8') === apiPage();

const operationText = (row: Route): string => {
  const name = nameOf(row);
  const notes = operationNotes[name];
  if (!notes) throw new Error(`no notes on ${name}`);
  return [
    `### ${name}`,
    `${row.summary}. ${ACCESS[row.access]}${row.deprecated ? ` Deprecated: [\`${row.deprecated.successor}\`](#terminal) replaces it; it goes on working.` : ''}`,
    notes.about.trim(),
    ...(row.query ? [inputText('Query', fieldsOf(row.query, 'query'), { name, notes: notes.query ?? {} })] : []),
    ...(row.body ? [inputText('Body', fieldsOf(row.body, 'input'), { name, notes: notes.body ?? {} })] : []),
    ...answersText(row, notes),
    `Refuses with ${refusalsOf(row)}.`,
  ].join('\n\n');
};

const ACCESS: Readonly<Record<Route['access'], string>> = {
  open: 'Needs no key.', tenant: 'Needs a key.', admin: 'Needs a key with the admin role.',
};

const inputText = (what: string, fields: Fields, { name, notes }: { readonly name: string; readonly notes: Readonly<Record<string, string>> }): string => {
  checkNotes(`${name}, ${what}`, [...fields.keys()], notes);
  return tableOf([what, 'type', 'default', ''], [...fields].map(([field, { schema, required }]) =>
    [`\`${field}\``, typeOf(schema), required ? 'required' : defaultOf(schema), notes[field] ?? '']));
};

const answersText = (row: Route, notes: OperationNotes): readonly string[] => {
  const all = Object.entries(row.answers);
  const [first] = all;
  if (!first || all.some(([, schema]) => schema !== first[1])) throw new Error(`${nameOf(row)}: this page shows one answer only`);
  const rows = [...fieldsOf(first[1], 'output')].flatMap(([field, { schema, required }]) => answerRows(field, schema, required));
  checkNotes(`${nameOf(row)}, answer`, rows.filter(({ shape }) => shape === undefined).map(({ field }) => field), { ...pageNotesFor(rows.map(({ field }) => field)), ...notes.answer });
  return [tableOf([`Answer ${all.map(([status]) => status).join(' or ')}`, 'type', ''], rows.map(({ field, type, shape }) =>
    [`\`${field}\``, type, shape === undefined ? notes.answer?.[field] ?? pageFields[field] ?? '' : '']))];
};

const pageNotesFor = (fields: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(pageFields).filter(([field]) => fields.includes(field)));

interface AnswerRow { readonly field: string; readonly type: string; readonly shape: string | undefined }

/** A field that holds a shape names it, and lists only what it adds to it. */
const answerRows = (field: string, schema: Schema, required: boolean): readonly AnswerRow[] => {
  const inner = schema.type === 'array' && isSchema(schema.items) ? schema.items : schema;
  const fields = flattened(inner);
  const shape = shapeIn(fields);
  if (shape === undefined) return [{ field, type: `${typeOf(schema)}${required ? '' : ', may be absent'}`, shape }];
  const known = shapeFields(shape);
  const path = inner === schema ? field : `${field}[]`;
  const link = `[${shape}](#${shape.toLowerCase()})`;
  return [
    { field, type: inner === schema ? link : `array of ${link}`, shape },
    ...[...fields].filter(([name]) => !known.has(name)).map(([name, { schema: type, required: always }]) =>
      ({ field: `${path}.${name}`, type: `${typeOf(type)}${always ? '' : ', may be absent'}`, shape: undefined })),
  ];
};

const shapeIn = (fields: Fields): string | undefined =>
  Object.keys(shapes).find((name) => [...shapeFields(name)].every(([field, { schema }]) => same(fields.get(field)?.schema, schema)));

/** A shape is read off the answer that its note names. */
const shapeFields = (name: string): Fields => {
  const { of, field } = shapes[name] ?? { of: '', field: '' };
  const [answer] = Object.values(routesOf(NO_OPERATIONS).find((row) => nameOf(row) === of)?.answers ?? {});
  const schema = answer && fieldsOf(answer, 'output').get(field)?.schema;
  if (!schema) throw new Error(`the shape ${name} is not at ${field} in ${of}`);
  return flattened(schema);
};

const shapeText = (name: string): string => {
  const { about = '', fields: notes = {} } = shapes[name] ?? {};
  const fields = shapeFields(name);
  checkNotes(`the shape ${name}`, [...fields.keys()], notes);
  return [`### ${name}`, about.trim(), tableOf(['field', 'type', ''], [...fields].map(([field, { schema, required }]) =>
    [`\`${field}\``, `${typeOf(schema)}${required ? '' : ', may be absent'}`, notes[field] ?? '']))].join('\n\n');
};

/** Its own, then those that come with a key, a body and a query. */
const refusalsOf = (row: Route): string => {
  const codes = new Set<ErrorCode>(row.refusals);
  if (row.access !== 'open') codes.add('API_KEY_REQUIRED').add('INVALID_API_KEY');
  if (row.access === 'admin') codes.add('ADMIN_REQUIRED');
  if (row.body || row.query) codes.add('INVALID_ARGUMENT');
  if (row.body) codes.add('PAYLOAD_TOO_LARGE').add('UNSUPPORTED_MEDIA_TYPE');
  codes.add('UNAVAILABLE');
  return codesByStatus([...codes]).map((code) => `${statusOf(code)} \`${code}\``).join(', ');
};

const codesByStatus = (codes: readonly ErrorCode[]): readonly ErrorCode[] => [...codes].sort((a, b) => statusOf(a) - statusOf(b));

/** Of a schema's input; of a query's what its texts stand for, where JSON schema can say it. */
const fieldsOf = (schema: z.ZodType, as: 'input' | 'output' | 'query'): Fields => {
  const json = (io: 'input' | 'output') => topLevel(z.toJSONSchema(schema, { io, unrepresentable: 'any' }));
  if (as !== 'query') return json(as);
  const read = json('output');
  return new Map([...json('input')].map(([field, { schema: text, required }]) => {
    const meant = read.get(field)?.schema;
    const type = meant?.type === undefined ? { ...text, ...(meant?.default === undefined ? {} : { default: meant.default }) } : meant;
    return [field, { schema: type, required }];
  }));
};

const topLevel = (schema: Schema): Fields => new Map(Object.entries(schema.properties ?? {}).filter(([, value]) => isSchema(value))
  .map(([name, value]) => [name, { schema: value as Schema, required: schema.required?.includes(name) ?? false }]));

/** Objects within are shown by their fields' paths. */
const flattened = (schema: Schema): Fields => new Map([...topLevel(schema)].flatMap(([name, field]) => {
  const inner = flattened(field.schema);
  return inner.size === 0 ? [[name, field] as const] : [...inner].map(([below, one]) => [`${name}.${below}`, one] as const);
}));

const typeOf = (schema: Schema): string => {
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.filter((value) => value !== '').map(literal).join(', ');
  if (schema.anyOf) return schema.anyOf.filter(isSchema).map(typeOf).join(' or ');
  if (schema.type === 'array') return `array of ${schema.maxItems === undefined ? '' : `${schema.minItems ?? 0} to ${schema.maxItems} `}${isSchema(schema.items) ? typeOf(schema.items) : 'anything'}`;
  if (schema.type === 'object') return 'map of text to text';
  if (schema.type === 'string') return schema.format === 'date-time' ? 'timestamp' : `text${bounds(schema.minLength, schema.maxLength, ' characters')}`;
  if (schema.type === 'integer') return `integer${bounds(safe(schema.minimum), safe(schema.maximum), '', ' from ')}`;
  return typeof schema.type === 'string' ? schema.type : 'anything';
};

const bounds = (least: number | undefined, most: number | undefined, unit: string, from = ' of '): string => {
  if (most === undefined) return '';
  return least === undefined ? ` of at most ${most}${unit}` : `${from}${least} to ${most}${unit}`;
};

const safe = (value: number | undefined): number | undefined => (value !== undefined && Number.isSafeInteger(value) && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined);
const literal = (value: unknown): string => `\`${JSON.stringify(value)}\``;
const defaultOf = ({ default: value }: Schema): string => (value === undefined ? '–' : literal(value));
const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);
const same = (a: Schema | undefined, b: Schema): boolean => JSON.stringify(a) === JSON.stringify(b);
const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
const anchorOf = (heading: string): string => heading.toLowerCase().replaceAll(/[^a-z0-9 _-]/g, '').replaceAll(' ', '-');

const tableOf = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

const checkNotes = (where: string, fields: readonly string[], notes: Readonly<Record<string, string>>): void => {
  const missing = fields.filter((field) => notes[field] === undefined);
  const strange = Object.keys(notes).filter((field) => !fields.includes(field));
  if (missing.length > 0) throw new Error(`${where}: no note on ${missing.join(', ')} (script/api-docs-fields.ts)`);
  if (strange.length > 0) throw new Error(`${where}: a note on ${strange.join(', ')}, which it does not have (script/api-docs-fields.ts)`);
};

const main = (args: readonly string[]): number => {
  if (!args.includes('--check')) {
    writeFileSync(PAGE, apiPage());
    return 0;
  }
  if (apiPageIsFresh()) return 0;
  process.stderr.write('docs/api.md is stale: run npx tsx script/api-docs.ts\n');
  return 1;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));

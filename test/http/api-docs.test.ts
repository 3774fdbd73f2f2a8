import { expect } from 'chai';
import { z } from 'zod';
import { apiPages } from '../../script/api-docs.ts';
import { routesOf } from '../../src/http/server/app.ts';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import type { Operations } from '../../src/services/operations.ts';

type Json = z.core.JSONSchema.BaseSchema;

const PAGES = apiPages();
const ROWS = routesOf({} as Operations);

/** By their headings; a heading occurs once. */
const SECTIONS: ReadonlyMap<string, string> = new Map(
  [...PAGES.values()]
    .flatMap((page) => page.split('\n## ').slice(1))
    .map((section) => {
      const [heading = ''] = section.split('\n', 1);
      return [heading, section.slice(heading.length)] as const;
    }),
);

/** The tables of a section whose head begins with a word, as a field's name to its cells. */
const tableIn = (section: string, head: string): ReadonlyMap<string, readonly string[]> => {
  const lines = section.split('\n');
  const from = lines.findIndex((line) => line.startsWith(`| ${head}`));
  const to = lines.findIndex((line, at) => at > from && !line.startsWith('|'));
  const rows = from < 0 ? [] : lines.slice(from + 2, to < 0 ? undefined : to);
  return new Map(
    rows.map((row) => {
      const [, name = '', ...cells] = row
        .split(' | ')
        .flatMap((cell, at) => (at === 0 ? ['', cell.replace(/^\| /, '')] : [cell]));
      return [name.replaceAll('`', ''), cells];
    }),
  );
};

interface Field {
  readonly path: string;
  readonly schema: Json;
}

/** Every field of a schema, however deep, but of what has a section of its own. */
const fieldsOf = (schema: Json, path = ''): readonly Field[] => {
  const below = (inner: unknown, at: string) => (isSchema(inner) ? fieldsOf(inner, at) : []);
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
      const at = path === '' ? name : `${path}.${name}`;
      return isSchema(inner) ? [{ path: at, schema: inner }, ...fieldsOf(inner, at)] : [];
    }),
    ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((inner) => below(inner, path)),
    ...below(schema.items, `${path}[]`),
    ...below(schema.additionalProperties, `${path}.*`),
  ];
};

const isSchema = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What a type's words must have in them. */
const wordsOf = (schema: Json): RegExp => {
  if (schema.$ref !== undefined) return new RegExp(`\\[${schema.$ref.slice('#/$defs/'.length)}\\]`);
  if (schema.const !== undefined || schema.enum)
    return new RegExp(
      (schema.enum ?? [schema.const]).map((value) => `(?=.*\`${JSON.stringify(value)}\`)`).join(''),
    );
  const either = (schema.anyOf ?? schema.oneOf ?? []).filter(isSchema);
  if (either.length > 0)
    return new RegExp(either.map((each) => `(?=.*${wordsOf(each).source})`).join(''));
  if (schema.type === 'object')
    return schema.properties === undefined && isSchema(schema.additionalProperties)
      ? /^map of text to /
      : /object/;
  return (
    {
      array: /array of/,
      string: /text|timestamp/,
      integer: /integer/,
      number: /number/,
      boolean: /`true`, `false`/,
      null: /null/,
    }[String(schema.type)] ?? /anything/
  );
};

/** What of a schema's fields a table lacks or says wrongly. */
const faultsOf = (schema: Json, table: ReadonlyMap<string, readonly string[]>): readonly string[] =>
  fieldsOf(schema).flatMap(({ path, schema: of }) => {
    const type = table.get(path)?.[0];
    if (type === undefined) return [`${path} is not there`];
    return wordsOf(of).test(type.replace(/, may be absent$/, ''))
      ? []
      : [`${path} is "${type}", not ${wordsOf(of).source}`];
  });

const jsonOf = (schema: z.ZodType, io: 'input' | 'output'): Json => {
  const { $ref, $defs, ...own } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return $ref === undefined ? own : ($defs?.[$ref.slice('#/$defs/'.length)] ?? own);
};

describe('docs/reference/api', () => {
  it('shows each operation with its fields, bounds, statuses and codes', () => {
    const claim = SECTIONS.get('POST /sandboxes') ?? '';

    expect(claim).to.include('| `poolName` | text of 1 to 512 characters | required |');
    expect(claim).to.include('| Answer 201 |').and.to.include('[Sandbox](shapes.md#sandbox)');
    expect(claim)
      .to.include('403 `POOL_NOT_OWNED`')
      .and.to.include('429 `POOL_EXHAUSTED`')
      .and.to.include('401 `API_KEY_REQUIRED`');
  });

  it('has every field of every request, however deep, with its type', () => {
    const faults = ROWS.flatMap(({ method, path, body, query }) => {
      const section = SECTIONS.get(`${method} ${path}`) ?? '';
      return [
        ...(body ? faultsOf(jsonOf(body, 'input'), tableIn(section, 'Body')) : []),
        ...(query
          ? fieldsOf(jsonOf(query, 'input'))
              .filter((field) => !tableIn(section, 'Query').has(field.path))
              .map((field) => `${field.path} is not there`)
          : []),
      ].map((fault) => `${method} ${path}: ${fault}`);
    });

    expect(faults).to.deep.equal([]);
    expect(
      tableIn(SECTIONS.get('POST /sandboxpools') ?? '', 'Body').get(
        'overrides.imagePullSecret.registries[].registry',
      ),
    ).to.include('required');
    expect(tableIn(SECTIONS.get('POST /sandboxpools') ?? '', 'Body').get('labels')?.[0]).to.match(
      /^map of text to text/,
    );
  });

  it('has every field of every answer, however deep, with its type', () => {
    const faults = ROWS.flatMap(({ method, path, answers }) =>
      Object.values(answers).flatMap((answer) =>
        faultsOf(
          jsonOf(answer, 'output'),
          tableIn(SECTIONS.get(`${method} ${path}`) ?? '', 'Answer'),
        ).map((fault) => `${method} ${path}: ${fault}`),
      ),
    );
    const shapes = new Map(
      ROWS.flatMap(({ answers }) => Object.values(answers)).flatMap((answer) => {
        const { $ref, $defs = {} } = z.toJSONSchema(answer, {
          io: 'output',
          unrepresentable: 'any',
        });
        return Object.entries($defs).filter(([name]) => $ref !== `#/$defs/${name}`);
      }),
    );
    const ofShapes = [...shapes].flatMap(([name, schema]) =>
      faultsOf(schema, tableIn(SECTIONS.get(name) ?? '', 'field')).map(
        (fault) => `${name}: ${fault}`,
      ),
    );

    expect([...faults, ...ofShapes]).to.deep.equal([]);
    expect(shapes).to.include.keys('Sandbox', 'Pool', 'Env');
  });

  it('links deprecated operations to their replacements', () => {
    const anchorOf = (operation: string) =>
      operation
        .toLowerCase()
        .replaceAll(/[^a-z0-9 _-]/g, '')
        .replaceAll(' ', '-');
    const led = ROWS.filter(({ deprecated }) => deprecated).map(({ method, path, deprecated }) => {
      const [, name = '', anchor] =
        /Deprecated: \[`([^`]*)`\]\((?:[a-z-]+\.md)?#([^)]*)\)/.exec(
          SECTIONS.get(`${method} ${path}`) ?? '',
        ) ?? [];
      expect(name.split(' ')[1], path).to.equal(deprecated?.successor);
      expect(SECTIONS.has(name), `${name} is an operation`).to.equal(true);
      expect(anchor, path).to.equal(anchorOf(name));
      return [`${method} ${path}`, name];
    });

    expect(Object.fromEntries(led)).to.deep.equal({
      'GET /sandboxes/{sandboxId}/is_ready': 'GET /sandboxes/{sandboxId}',
      'POST /sandboxes/{sandboxId}/exec': 'POST /sandboxes/{sandboxId}/processes',
      'POST /sandboxpools/{name}/sync-template': 'PUT /sandboxpools/{name}',
    });
  });
});

describe('the OpenAPI document', () => {
  it('has no defaults in request bodies, since generators treat such fields as required', () => {
    const document = openApiDocument(ROWS);
    const schemas = new Map<string, unknown>(Object.entries(document.components['schemas'] ?? {}));
    const bodies = [...schemas].filter(([name]) => name.endsWith('Body'));
    const withDefaults = bodies
      .filter(([, body]) => JSON.stringify(body).includes('"default":'))
      .map(([name]) => name);

    expect(withDefaults).to.deep.equal([]);
    expect(JSON.stringify(schemas.get('ExecInSandboxBody')), 'the description has it').to.include(
      'Default: 300',
    );
  });
});

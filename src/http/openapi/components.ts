import { z } from 'zod';

/** A JSON Schema (2020-12), which is what OpenAPI 3.1 has for schemas. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * Holds what one document's operations share. Turns zod schemas into JSON Schemas; one with an id
 * stands once, under its name in `components.schemas`, and is referred to from wherever it occurs.
 */
export class Components {
  readonly #schemas = new Map<string, JsonSchema>();
  readonly #responses = new Map<string, JsonSchema>();

  /**
   * Schema of what a client may send. What is not named in it is let pass, so objects stay open. A
   * default is told in words: generators of clients take a field that has one for a required one.
   */
  input(schema: z.ZodType): JsonSchema {
    return this.#inline(
      z.toJSONSchema(schema, {
        io: 'input',
        unrepresentable: 'any',
        override: ({ jsonSchema }) => {
          if (jsonSchema.default === undefined) return;
          jsonSchema.description = [
            jsonSchema.description,
            `Default: ${JSON.stringify(jsonSchema.default)}.`,
          ]
            .filter(Boolean)
            .join(' ');
          delete jsonSchema.default;
        },
      }),
    );
  }

  /** Schema of what is answered. Fields may be added later, so objects stay open here too. */
  output(schema: z.ZodType): JsonSchema {
    return this.#inline(
      z.toJSONSchema(schema, {
        io: 'output',
        unrepresentable: 'any',
        override: ({ jsonSchema }) => {
          if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
        },
      }),
    );
  }

  /** The fields of a query: of what their texts stand for, where a schema can say it. */
  query(
    schema: z.ZodType,
  ): Readonly<Record<string, { readonly schema: JsonSchema; readonly required: boolean }>> {
    const meant = propertiesOf(this.output(schema));
    const sent = this.#inline(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
    const required = new Set(Array.isArray(sent['required']) ? sent['required'] : []);
    return Object.fromEntries(
      Object.entries(propertiesOf(sent)).map(([name, text]) => {
        const value = meant[name];
        return [
          name,
          { schema: value?.['type'] === undefined ? text : value, required: required.has(name) },
        ];
      }),
    );
  }

  /**
   * Puts a schema under a name of its own, and answers the reference to it. A reference stays what
   * it is.
   */
  schema(name: string, schema: JsonSchema): JsonSchema {
    if (typeof schema['$ref'] === 'string' && Object.keys(schema).length === 1) return schema;
    this.#schemas.set(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  }

  /** Puts a response under a name of its own, and answers the reference to it. */
  response(name: string, response: JsonSchema): JsonSchema {
    this.#responses.set(name, response);
    return { $ref: `#/components/responses/${name}` };
  }

  /** All that was named so far, by name. */
  named(): {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, JsonSchema>>;
  } {
    return { schemas: sorted(this.#schemas), responses: sorted(this.#responses) };
  }

  #inline({ $defs, ...schema }: z.core.JSONSchema.BaseSchema): JsonSchema {
    for (const [name, definition] of Object.entries($defs ?? {}))
      this.#schemas.set(name, tidied(definition));
    return tidied(schema);
  }
}

export const propertiesOf = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> => {
  const properties = schema['properties'];
  return isSchema(properties)
    ? Object.fromEntries(
        Object.entries(properties).filter((entry): entry is [string, JsonSchema] =>
          isSchema(entry[1]),
        ),
      )
    : {};
};

export const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const sorted = (named: ReadonlyMap<string, JsonSchema>): Readonly<Record<string, JsonSchema>> =>
  Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1)));

/**
 * References lead into the document, descriptions to nothing outside it; bounds that are only those
 * of a number are left out.
 */
const tidied = (schema: JsonSchema): JsonSchema => {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    // a field of that name has a schema
    if ((key === 'id' || key === '$schema') && typeof value === 'string') continue;
    if (key === '$ref' && typeof value === 'string')
      result[key] = value.replace('#/$defs/', '#/components/schemas/');
    else if (
      (key === 'minimum' || key === 'maximum') &&
      Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER
    )
      continue;
    else if (key === 'description' && typeof value === 'string')
      result[key] = withoutPageLinks(value);
    else result[key] = tidiedValue(value);
  }
  return result;
};

const tidiedValue = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(tidiedValue);
  return isSchema(value) ? tidied(value) : value;
};

/** Links to pages beside docs/api.md, and within it, lead nowhere from here. */
export const withoutPageLinks = (text: string): string =>
  text.replaceAll(/\[([^\]]+)\]\((?!https?:)[^)]*\)/g, '$1');

import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import {
  at,
  document,
  documentedOperations,
  isObject,
  type Json,
  validatorOf,
} from '../support/harness/documented-answers.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('the OpenAPI document', () => {
  let server: TestServer;
  before(async () => {
    server = await aServer();
  });
  after(() => server.stop());

  it('is public, and the same under /v1', async () => {
    const plain = await server.anyone.get('/openapi.json');
    const versioned = await server.anyone.get('/v1/openapi.json');

    expect(plain.status).to.equal(200);
    expect(plain.headers['content-type']).to.equal('application/json; charset=utf-8');
    expect(versioned.text).to.equal(plain.text);
    expect(JSON.parse(plain.text)).to.deep.equal(JSON.parse(JSON.stringify(document)));
  });

  it('is not sent again to a client that has it', async () => {
    const { headers } = await server.anyone.get('/openapi.json');
    const again = await server.anyone.get('/openapi.json', {
      headers: { 'If-None-Match': headers['etag'] ?? '' },
    });

    expect(again.status).to.equal(304);
    expect(again.text).to.equal('');
  });

  it('is read-only', async () => {
    const { status, headers } = await server.anyone.post('/openapi.json', {});

    expect(status).to.equal(405);
    expect(headers['allow']).to.include('GET');
  });

  it('passes a linter', async function () {
    const config = await createConfig({ extends: ['recommended-strict'] });
    const problems = await lintFromString({
      source: JSON.stringify(document),
      absoluteRef: 'openapi.json',
      config,
    });

    expect(
      problems.map(
        ({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer ?? ''}`,
      ),
    ).to.deep.equal([]);
  });

  it('names each operation once', () => {
    const names = documentedOperations.map(({ operation }) => operation['operationId']);

    expect(new Set(names).size).to.equal(names.length);
    for (const name of names) expect(name).to.match(/^[a-z][A-Za-z]+$/);
  });

  it('marks admin operations by their security scheme', () => {
    for (const { path, operation } of documentedOperations) {
      const schemes = (operation['security'] as readonly Json[]).flatMap(Object.keys);
      expect(schemes, path).to.deep.equal(
        /^\/(admin|debug)\//.test(path)
          ? ['AdminKeyAuth']
          : /^\/(healthz|readyz)$/.test(path)
            ? []
            : /^\/approvals\/.*decision$/.test(path)
              ? ['ConsoleSession']
              : path.startsWith('/approvals')
                ? ['ApiKeyAuth', 'ConsoleSession']
                : ['ApiKeyAuth'],
      );
    }
    expect(at('/components/securitySchemes/ApiKeyAuth')).to.include({
      type: 'apiKey',
      in: 'header',
      name: 'SERVICE-API-KEY',
    });
    expect(at('/components/securitySchemes/AdminKeyAuth')).to.include({
      type: 'apiKey',
      in: 'header',
      name: 'SERVICE-API-KEY',
    });
  });

  it('declares the refusals of a claim, each with an example', () => {
    expect(
      at('/paths/~1sandboxes/post/responses/429/content/application~1json/examples'),
    ).to.have.all.keys('POOL_EXHAUSTED', 'QUOTA_EXCEEDED', 'RATE_LIMITED', 'TOO_MANY_WAITING');
    expect(at('/components/examples/POOL_EXHAUSTED')?.['value']).to.include({
      error: 'no idle pods available in pool',
      errorCode: 'POOL_EXHAUSTED',
    });
    expect(
      at('/components/responses/ApiKeyRequiredOrInvalidApiKey/content/application~1json/examples'),
    ).to.have.all.keys('API_KEY_REQUIRED', 'INVALID_API_KEY');
  });

  it('has examples that fit its schemas', () => {
    const media = [...mediaIn(document)];
    expect(media.length).to.be.greaterThan(20);
    for (const { schema, examples } of media) {
      const validate = validatorOf(schema);
      for (const example of examples)
        expect(
          validate(example),
          `${JSON.stringify(example)}: ${JSON.stringify(validate.errors)}`,
        ).to.equal(true);
    }
  });

  it('marks deprecated operations', () => {
    expect(
      documentedOperations
        .filter(({ operation }) => operation['deprecated'] === true)
        .map(({ operation }) => operation['operationId']),
    ).to.include('execInSandbox');
  });
});

/** Every media type of the document that has examples. */
function* mediaIn(
  value: unknown,
): Generator<{ readonly schema: Json; readonly examples: readonly unknown[] }> {
  if (Array.isArray(value)) for (const inner of value) yield* mediaIn(inner);
  if (!isObject(value)) return;
  if (isObject(value['schema']) && isObject(value['examples'])) {
    yield {
      schema: value['schema'],
      examples: Object.values(value['examples']).map((example) => exampleOf(example)),
    };
  } else if (isObject(value['schema']) && 'example' in value)
    yield { schema: value['schema'], examples: [value['example']] };
  for (const inner of Object.values(value)) yield* mediaIn(inner);
}

const exampleOf = (example: unknown): unknown =>
  isObject(example) && typeof example['$ref'] === 'string'
    ? at(example['$ref'].slice(1))?.['value']
    : example;

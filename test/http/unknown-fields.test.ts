import { expect } from 'chai';
import { z } from 'zod';
import { unknownFields, unknownFieldWarning } from '../../src/http/corridor/validation.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('warnings about unknown fields', () => {
  const part = z.object({ known: z.string().optional() });
  const unknownOf = unknownFields(
    z.object({
      name: z.string(),
      part: part.default({}),
      list: z.array(part).optional(),
      map: z.record(z.string(), z.string()).optional(),
    }),
  );
  const fieldsOf = (body: unknown): readonly string[] =>
    unknownOf(body).map(
      (name) => /^299 - "unknown field (.*)"$/.exec(unknownFieldWarning(name))?.[1] ?? name,
    );

  it('name fields of the body, of nested objects and of objects in lists', () => {
    expect(
      fieldsOf({
        name: 'a',
        x: 1,
        part: { known: 'a', y: 2 },
        list: [{}, { z: 3 }],
        map: { any: 'thing' },
      }),
    ).to.deep.equal(['x', 'part.y', 'list[1].z']);
  });

  it('are absent for known fields, and for values that are not objects', () => {
    for (const body of [
      { name: 'a', part: {} },
      undefined,
      null,
      'text',
      [{ x: 1 }],
      { part: 7, list: 'x' },
    ])
      expect(fieldsOf(body)).to.deep.equal([]);
  });

  it('are limited to 16, short, and valid in a header', () => {
    expect(
      fieldsOf({
        part: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}`, 1])),
        more: 1,
      }),
    ).to.have.length(16);
    expect(fieldsOf({ ['ä"\\\n']: 1 })).to.deep.equal(['?\\"\\\\?']);
    expect(fieldsOf({ ['x'.repeat(100)]: 1 })[0]).to.have.length(64);
  });
});

describe('unknown fields with ?strict', () => {
  let server: TestServer;
  before(async () => {
    server = await aServer();
  });
  after(() => server.stop());

  it('are refused with their path, without an effect', async () => {
    const body = { name: 'shells', templateName: 'default', overrides: { image: 'a', colour: 1 } };
    for (const query of ['strict=true', 'strict', '%73trict=true']) {
      const { status, json } = await server.tenant.post(`/sandboxpools?${query}`, body);
      expect([status, json.errorCode, json.error, json.detail]).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
        'overrides.colour: is unknown',
        { field: 'overrides.colour' },
      ]);
    }
    expect((await server.tenant.get('/sandboxpools')).json.total).to.equal(0);
  });

  it('are refused even if the operation needs no body, or only part of one', async () => {
    for (const [method, path] of [
      ['POST', '/sandboxpools/none/sync-template'],
      ['PATCH', '/envs/none'],
      ['PUT', '/sandboxpools/none'],
    ] as const) {
      const body = Buffer.from('{"colour":1}');
      const headers = {
        'content-type': `application/${method === 'PATCH' ? 'merge-patch+' : ''}json`,
      };
      const sent = { headers, raw: body };
      const { status, json } = await server.tenant.send(method, `${path}?strict=true`, sent);
      expect([status, json.detail], path).to.deep.equal([400, { field: 'colour' }]);
    }
  });

  it('pass without it, and known ones with it, without a Warning', async () => {
    const pool = { name: 'shells', templateName: 'default' };
    const made = await server.tenant.post('/sandboxpools?strict=true', pool);
    const lax = await server.tenant.put('/sandboxpools/shells?strict=false', { colour: 1 });
    const odd = await server.tenant.put('/sandboxpools/shells?strict=maybe', {});
    const twice = await server.tenant.put('/sandboxpools/shells?strict&strict=false', {});

    expect([made.status, made.headers['warning']]).to.deep.equal([201, undefined]);
    expect([lax.status, lax.headers['warning']]).to.deep.equal([
      200,
      '299 - "unknown field colour"',
    ]);
    expect([odd.status, odd.json.detail]).to.deep.equal([
      400,
      { field: 'strict', allowed: ['true', 'false'] },
    ]);
    expect([twice.status, twice.json.detail]).to.deep.equal([400, { field: 'strict' }]);
  });
});

describe('unknown query parameters', () => {
  it('are named in a Warning, once each, whether or not the operation has parameters', async () => {
    const server = await aServer();
    try {
      const listed = await server.tenant.get('/sandboxes?limit=3&colour=red');
      const made = await server.tenant.post('/sandboxpools?dry=1', {
        name: 'shells',
        templateName: 'default',
        colour: 'red',
      });
      const read = await server.tenant.get('/v1/sandboxpools/shells?a=1&b=2');
      const plain = await server.tenant.get('/sandboxes?limit=3');

      expect([listed.status, listed.headers['warning']]).to.deep.equal([
        200,
        '299 - "unknown query parameter colour"',
      ]);
      expect([made.status, made.headers['warning']]).to.deep.equal([
        201,
        '299 - "unknown query parameter dry", 299 - "unknown field colour"',
      ]);
      expect([read.status, read.headers['warning']]).to.deep.equal([
        200,
        '299 - "unknown query parameter a", 299 - "unknown query parameter b"',
      ]);
      expect(plain.headers).not.to.have.property('warning');
    } finally {
      await server.stop();
    }
  });
});

import { expect } from 'chai';
import { z } from 'zod';
import { unknownFields, unknownFieldWarning } from '../../src/http/router/unknown-fields.ts';
import { aServer } from './a-server.ts';

describe('warnings of unknown fields', () => {
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

  it('name those of the body, of objects in it and of objects in lists', () => {
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

  it('are none for what is known, and for what is no object', () => {
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

  it('are 16 at most, short, and fit for a header', () => {
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

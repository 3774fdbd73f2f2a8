import { expect } from 'chai';
import { gzipSync } from 'node:zlib';
import { failing } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

describe('any request', () => {
  let server: TestServer;
  before(async () => {
    server = await aServer();
    await server.makeShells(10);
  });
  after(() => server.stop());
  const claim = (raw: string | Buffer, headers: Record<string, string> = {}) =>
    server.tenant.post('/sandboxes', undefined, { raw, headers });

  describe('its id', () => {
    it("is the client's if it is valid", async () => {
      for (const id of ['abc', 'A.b_c-9', 'x'.repeat(128)]) {
        expect(
          (await server.anyone.get('/healthz', { headers: { 'X-Request-Id': id } })).headers[
            'x-request-id'
          ],
        ).to.equal(id);
      }
    });

    it('is otherwise generated, and unique', async () => {
      const seen = new Set<string>();
      for (const id of ['', 'a b', 'x'.repeat(129), 'é', 'a,b', '${jndi}']) {
        const given = (await server.anyone.get('/nothing', { headers: { 'X-Request-Id': id } }))
          .headers['x-request-id']!;
        expect(given).to.match(REQUEST_ID).and.not.equal(id);
        seen.add(given);
      }
      expect(seen.size).to.equal(6);
    });
  });

  describe('its key', () => {
    it('can be a bearer token', async () => {
      const key = await server.operations.key('bearers', 'ada');
      const get = (headers: Record<string, string>) =>
        server.anyone.get('/sandboxpools', { headers });

      expect((await get({ Authorization: `Bearer ${key}` })).status).to.equal(200);
      expect((await get({ Authorization: `bearer  ${key} ` })).status).to.equal(200);
      const wrong = await get({ Authorization: `Bearer ${key}0` });
      expect([wrong.status, wrong.headers['www-authenticate']]).to.deep.equal([
        401,
        'ApiKeyAuth header="SERVICE-API-KEY", Bearer',
      ]);
      expect((await get({ Authorization: `Basic ${key}` })).status).to.equal(401);
      expect((await get({ Authorization: `Bearer ${key} ${key}` })).status).to.equal(401);
    });

    it('counts as SERVICE-API-KEY if both are there', async () => {
      const key = await server.operations.key('bearers', 'eve');
      const both = { Authorization: 'Bearer of-another-service', 'SERVICE-API-KEY': key };

      expect((await server.anyone.get('/sandboxpools', { headers: both })).status).to.equal(200);
    });
  });

  describe("to the daemon's own address", () => {
    it('redirects a browser to the pages', async () => {
      const { status, headers, text } = await server.anyone.get('/', {
        headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
      });

      expect([status, headers['content-type']]).to.deep.equal([200, 'text/html; charset=utf-8']);
      expect(text).to.include('href="docs"').and.not.include('href="console"');
      expect(headers['content-security-policy']).to.include("default-src 'none'");
    });

    it('gets 404 from a program', async () => {
      for (const accept of [undefined, '*/*', 'application/json']) {
        const headers: Readonly<Record<string, string>> =
          accept === undefined ? {} : { Accept: accept };
        expect((await server.anyone.get('/', { headers })).status).to.equal(404);
      }
    });
  });

  describe('to no operation', () => {
    it('gets 404', async () => {
      for (const path of [
        '/',
        '/nothing',
        '/sandboxes/',
        '/Sandboxes',
        '/sandboxes/a/b',
        '/sandboxes//x',
        '//sandboxes',
        '/admin',
        '/%',
        '/%zz',
        '/sandboxpools/a/b',
        '/v2/sandboxes',
        '/healthz/',
        '/sandboxes;x=1',
        '/__proto__',
      ]) {
        const answer = await server.tenant.get(path);
        expect(answer.status, path).to.equal(404);
        expect(answer.json).to.deep.equal({
          error: 'there is nothing at this path',
          errorCode: 'NOT_FOUND',
        });
        expect(answer.headers['content-type']).to.equal('application/json; charset=utf-8');
        expect(answer.headers['x-request-id']).to.match(REQUEST_ID);
      }
    });

    it('gets 405 with the allowed methods if the path has others', async () => {
      for (const [method, path, allow] of [
        ['DELETE', '/sandboxes', ['GET', 'HEAD', 'POST']],
        ['PATCH', '/sandboxpools/x', ['DELETE', 'GET', 'HEAD', 'PUT']],
        ['POST', '/healthz', ['GET', 'HEAD']],
        ['OPTIONS', '/sandboxes', ['GET', 'HEAD', 'POST']],
        ['TRACE', '/api-keys', ['GET', 'HEAD', 'POST']],
        ['PUT', '/admin/api-keys', ['DELETE', 'GET', 'HEAD', 'POST']],
        ['PROPFIND', '/readyz', ['GET', 'HEAD']],
      ] as const) {
        const answer = await server.tenant.send(method, path);
        expect(answer.status, `${method} ${path}`).to.equal(405);
        expect(answer.json.errorCode).to.equal('METHOD_NOT_ALLOWED');
        expect(answer.headers.allow!.split(', ').sort()).to.deep.equal(allow);
      }
    });
  });

  it('for just the headers gets them', async () => {
    const answer = await server.anyone.send('HEAD', '/healthz');
    expect([answer.status, answer.text, answer.headers['content-length']]).to.deep.equal([
      200,
      '',
      '15',
    ]);
  });

  describe('with a body', () => {
    it('needs an object of strict JSON', async () => {
      for (const [raw, field] of [
        ['[]', 'body'],
        ['null', 'body'],
        ['"poolName"', 'body'],
        ['7', 'body'],
        ['{"poolName":', 'body'],
        ['{"poolName":"a","poolName":"b"}', 'poolName'],
        ['{"x":{"__proto__":1}}', 'x.__proto__'],
        ['{"x":1e999}', 'x'],
        [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, undefined],
        [Buffer.from([0x7b, 0xff, 0x7d]), 'body'],
      ] as const) {
        const answer = await claim(raw);
        expect(answer.status, raw.toString().slice(0, 40)).to.equal(400);
        expect(answer.json.errorCode).to.equal('INVALID_ARGUMENT');
        if (field !== undefined) expect(answer.json.detail).to.deep.equal({ field });
      }
    });

    it('needs application/json in UTF-8', async () => {
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'application/json; charset=latin1',
        'application/json-patch+json',
        'application/jsonx',
        'text/json',
        '',
        'multipart/form-data; boundary=x',
        'application/json; charset=utf-16',
      ]) {
        const answer = await claim('{"poolName":"shells"}', { 'Content-Type': type });
        expect([answer.status, answer.json.errorCode], type).to.deep.equal([
          415,
          'UNSUPPORTED_MEDIA_TYPE',
        ]);
      }
      for (const type of [
        'application/json',
        'Application/JSON',
        'application/json;charset=utf-8',
        'application/json; charset="UTF-8"',
        'application/json ; charset=utf8',
      ]) {
        expect(
          (await claim('{"poolName":"shells"}', { 'Content-Type': type })).status,
          type,
        ).to.equal(201);
      }
    });

    it('has the same rules for operations without fields', async () => {
      const preview = '/sandboxpools/shells/sync-template/preview';
      const sent = (raw: string, type = 'application/json') =>
        server.tenant.send('POST', preview, { raw, headers: { 'Content-Type': type } });

      expect((await sent('{}', 'text/plain')).status).to.equal(415);
      expect((await sent('[]')).json.detail).to.deep.equal({ field: 'body' });
      const { status, headers } = await sent('{"colour":1}');
      expect([status, headers['warning']]).to.deep.equal([200, '299 - "unknown field colour"']);
    });

    it('cannot be compressed', async () => {
      for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'x']) {
        const answer = await claim(gzipSync('{"poolName":"shells"}'), {
          'Content-Encoding': encoding,
        });
        expect([answer.status, answer.json.errorCode], encoding).to.deep.equal([
          415,
          'UNSUPPORTED_MEDIA_TYPE',
        ]);
      }
      expect(
        (await claim('{"poolName":"shells"}', { 'Content-Encoding': 'identity' })).status,
      ).to.equal(201);
    });

    it('can be one MiB and not more', async () => {
      const sized = (bytes: number): string => `{"x":"${'y'.repeat(bytes - 8)}"}`;
      expect((await claim(sized(1_048_576))).json.error).to.equal('poolName is required');
      for (const bytes of [1_048_577, 2_000_000, 5_000_000]) {
        const answer = await claim(sized(bytes));
        expect(answer.status).to.equal(413);
        expect(answer.json.errorCode).to.equal('PAYLOAD_TOO_LARGE');
      }
      expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
    });
  });

  describe('with an internal error', () => {
    it('gets 500 with its id, and the cause is logged', async () => {
      const fault = new Error('secret: /var/lib/x', { cause: new Error('deeper') });
      failing(server.operations, fault, 'listSandboxes', 'getPool');
      for (const ask of [
        () => server.tenant.get('/sandboxes'),
        () => server.tenant.get('/sandboxpools/x'),
      ]) {
        const answer = await ask();
        expect(answer.status).to.equal(500);
        const requestId = answer.headers['x-request-id'];
        expect(answer.json).to.deep.equal({
          error: 'internal error',
          errorCode: 'INTERNAL',
          detail: { requestId },
        });
        const line = server.log.find(
          ({ level, fields }) => level === 'error' && fields.requestId === requestId,
        );
        expect(line?.fields.error).to.equal(fault);
      }
    });
  });

  it('leaves one line in the log', async () => {
    server.log.length = 0;
    await server.tenant.get('/sandboxes?limit=5', { headers: { 'X-Request-Id': 'one' } });
    await server.tenant.get('/sandboxes?limit=0', { headers: { 'X-Request-Id': 'two' } });
    expect(
      server.log.map(({ level, event, fields }) => [
        level,
        event,
        fields.requestId,
        fields.method,
        fields.path,
        fields.status,
        fields.errorCode,
      ]),
    ).to.deep.equal([
      ['debug', 'request-answered', 'one', 'GET', '/sandboxes', 200, undefined],
      ['info', 'request-answered', 'two', 'GET', '/sandboxes', 400, 'INVALID_ARGUMENT'],
    ]);
    expect(server.log[0]!.fields).to.include({ team: 'blue', user: 'ada' });
  });
});

describe('health over HTTP', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  it('is ok without a key', async () => {
    const answer = await server.anyone.get('/healthz');
    expect([answer.status, answer.json]).to.deep.equal([200, { status: 'ok' }]);
  });

  it('shows what readiness lacks', async () => {
    expect((await server.anyone.get('/readyz')).json).to.deep.equal({
      status: 'ready',
      problems: [],
      warnings: [],
      isolation: 'fake',
    });
    server.operations.driver.description = {
      pauses: true,
      problems: ['the spawner is not running'],
      warnings: ['limits by prlimit alone'],
      isolation: 'prlimit',
    };
    const answer = await server.anyone.get('/readyz');
    expect(answer.status).to.equal(503);
    expect(answer.json).to.deep.equal({
      status: 'not ready',
      problems: ['sandboxes: the spawner is not running'],
      warnings: ['limits by prlimit alone'],
      isolation: 'prlimit',
    });
    expect(answer.headers['retry-after']).to.equal('1');
    expect((await server.anyone.get('/healthz')).status).to.equal(200);
  });
});

import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { EventReader } from '../support/harness/event-reader.ts';
import type { HttpAnswer } from '../support/harness/http-client.ts';
import { tarOf } from '../support/builders/an-oci-layout.ts';
import { aServer, type TestServer } from './a-server.ts';

const BYTES = { 'Content-Type': 'application/octet-stream' };
const HOME = '/home/sandbox';

describe('/sandboxes/{sandboxId}/files', () => {
  let server: TestServer;
  let id: string;

  const at = (path: string, more = ''): string =>
    `/sandboxes/${id}/files?path=${encodeURIComponent(path)}${more}`;
  const put = (
    path: string,
    content: string | Buffer,
    { more = '', headers = {} }: { more?: string; headers?: Record<string, string> } = {},
  ): Promise<HttpAnswer> =>
    server.tenant.put(at(path, more), undefined, {
      raw: content,
      headers: { ...BYTES, ...headers },
    });

  beforeEach(async () => {
    server = await aServer();
    await server.makeShells(2);
    id = (await server.tenant.post('/sandboxes', { poolName: 'shells' })).json.sandbox!.sandboxId!;
  });
  afterEach(() => server.stop());

  it('writes a file and reads it', async () => {
    const made = await put(`${HOME}/note`, 'hello', { more: '&mode=600' });

    expect(made.status).to.equal(201);
    const { file } = JSON.parse(made.text);
    expect(file).to.include({ path: `${HOME}/note`, kind: 'File', size: 5, mode: '0600' });
    expect(made.headers['etag']).to.equal(file.etag);
    const read = await server.tenant.get(at(`${HOME}/note`));
    expect([read.status, read.text]).to.deep.equal([200, 'hello']);
    expect(read.headers).to.include({
      etag: file.etag,
      'content-type': 'application/octet-stream',
      'content-length': '5',
      'accept-ranges': 'bytes',
      'x-file-mode': '0600',
      'x-content-type-options': 'nosniff',
    });
    expect((await put(`${HOME}/note`, 'again')).status).to.equal(200);
  });

  it('answers HEAD as GET, without a body', async () => {
    await put(`${HOME}/note`, 'hello');

    const { status, headers, text } = await server.tenant.send('HEAD', at(`${HOME}/note`));

    expect([status, headers['content-length'], text]).to.deep.equal([200, '5', '']);
    const folder = await server.tenant.send('HEAD', at(HOME), {
      headers: { Accept: 'application/octet-stream, application/x-tar' },
    });
    expect([folder.status, folder.headers['content-type']]).to.deep.equal([
      200,
      'application/x-tar',
    ]);
  });

  it('returns the requested range', async () => {
    await put(`${HOME}/note`, '0123456789');
    const range = (bytes: string, more: Record<string, string> = {}): Promise<HttpAnswer> =>
      server.tenant.get(at(`${HOME}/note`), { headers: { Range: bytes, ...more } });

    const part = await range('bytes=2-4');
    expect([part.status, part.text]).to.deep.equal([206, '234']);
    expect(part.headers['content-range']).to.equal('bytes 2-4/10');
    expect((await range('bytes=-3')).text).to.equal('789');
    expect((await range('bytes=7-')).text).to.equal('789');
    const behind = await range('bytes=10-');
    expect([behind.status, behind.json.errorCode]).to.deep.equal([416, 'RANGE_NOT_SATISFIABLE']);
    expect(behind.headers['content-range']).to.equal('bytes */10');
    for (const ignored of ['bytes=4-2', 'lines=1-2', 'bytes=1-2,4-5', 'bytes=-'])
      expect((await range(ignored)).status, ignored).to.equal(200);
    expect((await range('bytes=2-4', { 'If-Range': '"0-0"' })).status).to.equal(200);
    const tag = part.headers['etag'] ?? '';
    expect((await range('bytes=2-4', { 'If-Range': tag })).status).to.equal(206);
  });

  it('honours conditions', async () => {
    const { etag = '' } = (await put(`${HOME}/note`, 'one')).headers;
    const get = (headers: Record<string, string>): Promise<HttpAnswer> =>
      server.tenant.get(at(`${HOME}/note`), { headers });

    expect((await get({ 'If-None-Match': etag })).status).to.equal(304);
    expect((await get({ 'If-None-Match': '"0-0"' })).status).to.equal(200);
    expect((await get({ 'If-Match': '"0-0"' })).status).to.equal(412);
    expect((await get({ 'If-Match': etag })).status).to.equal(200);
    const stale = await put(`${HOME}/note`, 'two', { headers: { 'If-Match': '"3-0"' } });
    expect([stale.status, stale.json.errorCode]).to.deep.equal([412, 'PRECONDITION_FAILED']);
    expect((await put(`${HOME}/note`, 'two', { headers: { 'If-Match': etag } })).status).to.equal(
      200,
    );
    const none = await put(`${HOME}/note`, 'x', { headers: { 'If-None-Match': '*' } });
    expect(none.status).to.equal(412);
    const kept = await put(`${HOME}/note`, 'x', { more: '&overwrite=false' });
    expect([kept.status, kept.json.errorCode]).to.deep.equal([409, 'ALREADY_EXISTS']);
    expect((await server.tenant.get(at(`${HOME}/note`))).text).to.equal('two');
  });

  it('reads and writes whole folders', async () => {
    const archive = await tarOf([
      { name: 'a/one', content: '1' },
      { name: 'two', content: '22' },
    ]);

    const unpacked = await put(`${HOME}/tree`, archive, {
      headers: { 'Content-Type': 'application/x-tar' },
    });

    expect([unpacked.status, JSON.parse(unpacked.text)]).to.deep.equal([
      200,
      { archive: { entries: 2, bytes: 3 } },
    ]);
    expect((await server.tenant.get(at(`${HOME}/tree/a/one`))).text).to.equal('1');
    const packed = await server.tenant.get(at(`${HOME}/tree`), {
      headers: { Accept: 'application/x-tar' },
    });
    expect([packed.status, packed.headers['content-type']]).to.deep.equal([
      200,
      'application/x-tar',
    ]);
    expect(packed.text).to.include('./a/one');
    const asFile = await server.tenant.get(at(`${HOME}/tree`));
    expect([asFile.status, asFile.json.errorCode]).to.deep.equal([409, 'CONFLICT']);
    const bad = await put(`${HOME}/tree`, await tarOf([{ name: '../evil', content: 'x' }]), {
      headers: { 'Content-Type': 'application/x-tar' },
    });
    expect([bad.status, bad.json.detail]).to.deep.equal([400, { field: 'body' }]);
  });

  it('lists a folder page by page, with names that are not UTF-8', async () => {
    for (const name of ['a', 'b', 'c']) await put(`${HOME}/${name}`, name);
    const strange = Buffer.concat([Buffer.from(`${HOME}/d`), Buffer.from([0xff])]);
    await put(strange.toString('base64'), 'odd', { more: '&base64=true' });
    const list = (more: string): Promise<HttpAnswer> =>
      server.tenant.get(`/sandboxes/${id}/files/list?path=${HOME}${more}`);

    const first = JSON.parse((await list('&limit=2')).text);
    const second = JSON.parse((await list(`&limit=9&cursor=${first.nextCursor}`)).text);

    expect(first.items.map(({ path }: { path: string }) => path)).to.deep.equal([
      `${HOME}/a`,
      `${HOME}/b`,
    ]);
    expect(second.items[1]).to.include({ path: strange.toString('base64'), base64: true });
    expect(second).not.to.have.property('nextCursor');
    const odd = await server.tenant.get(at(second.items[1].path, '&base64=true'));
    expect(odd.text).to.equal('odd');
  });

  it('moves and removes, and creates folders', async () => {
    await put(`${HOME}/from`, 'moved');
    const move = (body: object): Promise<HttpAnswer> =>
      server.tenant.post(`/sandboxes/${id}/files/move`, body);

    const made = await server.tenant.post(`/sandboxes/${id}/files/mkdir`, { path: `${HOME}/d` });
    expect(made.status).to.equal(201);
    const moved = await move({ from: `${HOME}/from`, to: `${HOME}/d/to` });
    expect([moved.status, JSON.parse(moved.text).file.path]).to.deep.equal([200, `${HOME}/d/to`]);
    expect((await move({ from: `${HOME}/gone`, to: `${HOME}/x` })).json.errorCode).to.equal(
      'FILE_NOT_FOUND',
    );
    const full = await server.tenant.delete(at(`${HOME}/d`));
    expect([full.status, full.json.detail]).to.deep.equal([
      409,
      { hint: 'recursive=true also removes everything in it' },
    ]);
    const removed = await server.tenant.delete(at(`${HOME}/d`, '&recursive=true'));
    expect(JSON.parse(removed.text)).to.deep.equal({ path: `${HOME}/d`, status: 'deleted' });
    expect((await server.tenant.get(at(`${HOME}/d/to`))).status).to.equal(404);
  });

  it('reports changes', async () => {
    const reader = await EventReader.open(
      server.port,
      `/sandboxes/${id}/files/watch?path=${HOME}`,
      { 'SERVICE-API-KEY': server.tenant.key ?? '' },
    );
    const events = reader.read();
    await put(`${HOME}/new`, 'x');

    await events.until(
      () => events.events.some(({ event, data }) => event === 'created' && data['path'] === 'new'),
      'the new file is told',
    );
    reader.close();
  });

  const bad: readonly { readonly query: string; readonly field: string }[] = [
    { query: '', field: 'path' },
    { query: 'path=', field: 'path' },
    { query: 'path=relative', field: 'path' },
    { query: 'path=%2Fa%2F..%2Fb', field: 'path' },
    { query: 'path=%2Fa%00b', field: 'path' },
    { query: 'path=%2F%FF', field: 'path' },
    { query: `path=%2F${'n/'.repeat(2_500)}`, field: 'path' },
    { query: `path=%2F${'n'.repeat(256)}`, field: 'path' },
    { query: 'path=%2Fx&path=%2Fy', field: 'path' },
    { query: 'path=not64&base64=true', field: 'path' },
    { query: 'path=%2Fx&base64=maybe', field: 'base64' },
  ];
  for (const { query, field } of bad)
    it(`refuses ${query.slice(0, 40) || 'no path'}, and names the field`, async () => {
      const { status, json } = await server.tenant.get(`/sandboxes/${id}/files?${query}`);

      expect([status, json.errorCode, json.detail?.['field']]).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
        field,
      ]);
    });

  it('refuses an invalid mode and an encoded body', async () => {
    expect((await put(`${HOME}/x`, 'x', { more: '&mode=999' })).json.detail).to.deep.equal({
      field: 'mode',
    });
    const encoded = await put(`${HOME}/x`, 'x', { headers: { 'Content-Encoding': 'gzip' } });
    expect(encoded.status).to.equal(415);
  });

  it('shows the refusal to a client that reads only after writing its body', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.write(
      `PUT ${at(`${HOME}/no/such/folder`)} HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${server.tenant.key}\r\nContent-Length: ${6 << 20}\r\n\r\n`,
    );
    socket.pause();
    // It reads nothing before all is written.
    await new Promise((resolve) => {
      socket.write(Buffer.alloc(6 << 20), resolve);
    });

    const answer = String(await buffer(socket));

    expect(answer).to.match(/^HTTP\/1\.1 404 /);
    expect(answer)
      .to.include('FILE_NOT_FOUND')
      .and.to.match(/connection: close/i);
  });

  it('asks for the body only when needed', async () => {
    const ask = async (path: string): Promise<readonly string[]> => {
      const seen: string[] = [];
      const request = httpRequest({
        port: server.port,
        method: 'PUT',
        path: at(path),
        headers: {
          'SERVICE-API-KEY': server.tenant.key ?? '',
          Expect: '100-continue',
          'Content-Length': 2,
        },
      });
      request.on('continue', () => {
        seen.push('continue');
        request.end('ok');
      });
      request.flushHeaders();
      const [response] = await once(request, 'response');
      seen.push(String(response.statusCode));
      response.resume();
      request.destroy();
      return seen;
    };

    expect(await ask(`${HOME}/good`)).to.deep.equal(['continue', '201']);
    expect(await ask(`${HOME}/no/folder`)).to.deep.equal(['404']);
  });

  it('changes nothing if the body is truncated', async () => {
    await put(`${HOME}/note`, 'old');
    const socket = connect(server.port, '127.0.0.1');
    socket.write(
      `PUT ${at(`${HOME}/note`)} HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${server.tenant.key}\r\nContent-Length: 100\r\n\r\nhalf`,
    );
    await once(socket, 'ready');
    socket.end();
    await once(socket.resume(), 'close');

    expect((await server.tenant.get(at(`${HOME}/note`))).text).to.equal('old');
  });
});

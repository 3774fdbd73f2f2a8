import { existsSync, readdirSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { gzipSync } from 'node:zlib';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { MemoryFiles } from '../../support/fakes/memory-files.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';
import { NO_ATTRIBUTES, tmpfsHasAttributes } from '../../support/harness/tmpfs-attributes.ts';
import { aServedSandbox, onAServedSandbox } from './a-served-sandbox.ts';
import { call, RpcStream, sent, type Json } from './rpc-client.ts';

describe("file transfers of E2B's SDKs", function () {
  const served = onAServedSandbox();

  const exchange = async (path: string, part: Parameters<typeof sent>[2]) => {
    const answer = await sent(served().port, path, part);
    const body = await buffer(answer);
    return { status: answer.statusCode ?? 0, headers: answer.headers, body };
  };
  const read = (path: string) =>
    exchange(`/files?path=${encodeURIComponent(path)}`, { method: 'GET' });
  const write = async (query: string, body: Buffer | string, headers: OutgoingHttpHeaders) => {
    const answer = await exchange(`/files${query}`, { body, headers });
    return { status: answer.status, json: JSON.parse(String(answer.body)) as unknown };
  };
  const octets = (query: string, body: Buffer | string, headers = {}) =>
    write(query, body, { 'content-type': 'application/octet-stream', ...headers });
  const form = (query: string, parts: readonly string[], headers = {}) =>
    write(query, `${parts.map((part) => `--x\r\n${part}\r\n`).join('')}--x--\r\n`, {
      'content-type': 'multipart/form-data; boundary=x',
      ...headers,
    });
  const part = (filename: string, content: string): string =>
    `Content-Disposition: form-data; name="file"; filename="${filename}"\r\n` +
    `Content-Type: application/octet-stream\r\n\r\n${content}`;

  it('write and read a whole file, in new folders, of any name', async () => {
    const content = Buffer.alloc(3_000_000, 'content ');
    const path = '/tmp/new/of/é "+ &.bin';
    const query = `?path=${encodeURIComponent(path)}&username=user`;
    expect(await octets(query, content)).to.deep.equal({
      status: 200,
      json: [{ path, name: 'é "+ &.bin', type: 'file' }],
    });
    const back = await read(path);

    expect(back.status).to.equal(200);
    expect(back.headers['content-length']).to.equal(String(content.length));
    expect(back.body.equals(content)).to.equal(true);
  });

  it('read a part of a file, and its head', async () => {
    await octets('?path=/tmp/part', '0123456789');
    const asked = (range: string, method = 'GET') =>
      exchange('/files?path=/tmp/part', { method, headers: { range } });
    const part = await asked('bytes=2-4');
    const end = await asked('bytes=-3');
    const head = await asked('', 'HEAD');

    expect([part.status, String(part.body), part.headers['content-range']]).to.deep.equal([
      206,
      '234',
      'bytes 2-4/10',
    ]);
    expect([end.status, String(end.body)]).to.deep.equal([206, '789']);
    expect((await asked('bytes=10-')).status).to.equal(416);
    expect([head.status, head.headers['content-length'], head.body.length]).to.deep.equal([
      200,
      '10',
      0,
    ]);
  });

  it('accept text from a page without a file name, and ignore other fields', async () => {
    const text = 'Content-Disposition: form-data; name="file"\r\n\r\nté';
    const field = 'Content-Disposition: form-data; name="a"\r\n\r\nb';
    const one = await form('?path=/tmp/text', [field, text, field]);
    expect(one.json).to.deep.equal([{ path: '/tmp/text', name: 'text', type: 'file' }]);
    expect(String((await read('/tmp/text')).body)).to.equal('té');
    expect((await form('', [field, part('/tmp/beside', 'x')])).status).to.equal(200);
    const long = await form('?path=/tmp/text', [text + 'x'.repeat(1 << 20)]);
    expect([long.status, (long.json as Json)['message']]).to.deep.equal([
      400,
      'file: must have a file name, or at most 1048576 bytes',
    ]);
  });

  it('show that an empty file has no bytes', async () => {
    await octets('?path=/tmp/empty', '');
    expect((await read('/tmp/empty')).headers['content-length']).to.equal('0');
  });

  it('write each part of a form to the path in its name, or a single part to the requested path', async () => {
    const many = await form('', [part('/tmp/parts/a/é', 'one'), part('relative', 'two')]);
    expect(many).to.deep.equal({
      status: 200,
      json: [
        { path: '/tmp/parts/a/é', name: 'é', type: 'file' },
        { path: '/home/sandbox/relative', name: 'relative', type: 'file' },
      ],
    });
    expect(String((await read('/tmp/parts/a/é')).body)).to.equal('one');
    expect(String((await read('/home/user/relative')).body)).to.equal('two');
    const one = await form('?path=/tmp/asked', [part('other', 'three')]);
    expect(one.json).to.deep.equal([{ path: '/tmp/asked', name: 'asked', type: 'file' }]);
  });

  it('write hundreds of parts, one after another', async () => {
    const parts = Array.from({ length: 300 }, (_, at) => part(`/tmp/hundreds/${at}`, `${at}`));
    const { status, json } = await form('', parts);
    expect([status, (json as Json[]).length]).to.deep.equal([200, 300]);
    expect(String((await read('/tmp/hundreds/299')).body)).to.equal('299');
  });

  it('decompress gzip, and refuse invalid and truncated data', async () => {
    const packed = gzipSync('hello '.repeat(10_000));
    const gzip = { 'content-encoding': 'gzip' };
    expect((await octets('?path=/tmp/unpacked', packed, gzip)).status).to.equal(200);
    expect((await read('/tmp/unpacked')).body).to.have.length(60_000);
    for (const bad of [packed.subarray(0, 40), Buffer.from('none')])
      expect(await octets('?path=/tmp/unpacked', bad, gzip)).to.have.property('status', 400);
    expect((await read('/tmp/unpacked')).body).to.have.length(60_000);
    expect((await octets('?path=/tmp/x', packed, { 'content-encoding': 'br' })).status).to.equal(
      415,
    );
  });

  it('report a full disk, even from a bomb, and keep existing files', async () => {
    await served().driver.sh(served().sandboxId, 'echo old > /tmp/kept');
    const bomb = gzipSync(Buffer.alloc(600 << 20), { level: 1 });
    const full = await octets('?path=/tmp/kept', bomb, { 'content-encoding': 'gzip' });
    expect(full.status, JSON.stringify(full.json)).to.equal(507);
    expect(String((await read('/tmp/kept')).body)).to.equal('old\n');
  });

  it('refuse folders and invalid paths and forms, with a numeric code', async () => {
    const long = encodeURIComponent('x'.repeat(5_000));
    const asked: readonly [string, Promise<{ status: number }>, number][] = [
      ['no such file', read('/tmp/none'), 404],
      ['a folder', read('/tmp'), 400],
      ['no path', exchange('/files', { method: 'GET' }), 400],
      ['a NUL', read('/tmp/a\0b'), 400],
      ['a long name', exchange(`/files?path=/${long}`, { method: 'GET' }), 400],
      ['no UTF-8', exchange('/files?path=/tmp/%ff', { method: 'GET' }), 400],
      ['half a surrogate', exchange('/files?path=/%ed%a0%80', { method: 'GET' }), 400],
      ['root', exchange('/files?path=/tmp&username=root', { method: 'GET' }), 400],
      ['a path twice', exchange('/files?path=/a&path=/b', { method: 'GET' }), 400],
      ['another method', exchange('/files?path=/a', { method: 'PUT' }), 405],
      ['another type', write('?path=/tmp/x', 'x', { 'content-type': 'text/plain' }), 415],
      ['a folder in its place', octets('?path=/tmp', 'x'), 400],
      ['a name of a part that is none', form('', [part('/tmp/a\\0', 'x'), part('', 'x')]), 400],
      [
        'a text without a path',
        form('', ['Content-Disposition: form-data; name="file"\r\n\r\nb']),
        400,
      ],
      ['a field alone', form('', ['Content-Disposition: form-data; name="a"\r\n\r\nb']), 400],
      ['two for one path', form('?path=/tmp/x', [part('a', 'x'), part('b', 'x')]), 400],
      [
        'no part',
        write('', '--x--\r\n', { 'content-type': 'multipart/form-data; boundary=x' }),
        400,
      ],
      ['no boundary', write('', 'x', { 'content-type': 'multipart/form-data' }), 400],
      [
        'half a form',
        write('', `--x\r\n${part('/tmp/half', 'x')}`, {
          'content-type': 'multipart/form-data; boundary=x',
        }),
        400,
      ],
    ];
    for (const [what, answer, status] of asked) {
      const { status: got, ...rest } = await answer;
      expect(got, what).to.equal(status);
      const { json, body } = rest as { json?: Json; body?: Buffer };
      expect((json ?? (JSON.parse(String(body)) as Json))['code'], what).to.equal(status);
    }
    expect((await read('/tmp/half')).status).to.equal(404);
  });

  it('keep metadata from headers with each file, shown in calls and watchers', async function () {
    if (!tmpfsHasAttributes()) return skipBecause(this, NO_ATTRIBUTES);
    const { port, driver, sandboxId } = served();
    const ask = async (method: string, body: Json): Promise<Json> =>
      (await call(port, `/filesystem.Filesystem/${method}`, body)).json;
    await driver.sh(sandboxId, 'mkdir /tmp/tagged');
    const watch = { path: '/tmp/tagged', includeEntry: true };
    const stream = await RpcStream.open(port, '/filesystem.Filesystem/WatchDir', watch);
    await stream.until((message) => 'start' in message);

    const headers = {
      'X-Metadata-Author': ['Ada', 'Bob'],
      'x-metadata-__proto__': 'p',
      'x-metadata-e': '',
      ['__proto__']: 'no metadata',
    };
    const parts = [part('/tmp/tagged/1', 'one'), part('/tmp/tagged/2', 'two')];
    const { status, json } = await form('', parts, headers);

    expect(status).to.equal(200);
    const metadata = Object.fromEntries([
      ...[['author', 'Ada'] as const, ['__proto__', 'p'] as const, ['e', ''] as const],
    ]);
    expect((json as Json[]).map((each) => each['metadata'])).to.deep.equal([metadata, metadata]);
    expect((await ask('Stat', { path: '/tmp/tagged/1' }))['entry']).to.deep.include({ metadata });
    const { entries } = await ask('ListDir', { path: '/tmp/tagged' });
    expect((entries as Json[]).map((each) => each['metadata'])).to.deep.equal([metadata, metadata]);
    const seen = await stream.until((message) => JSON.stringify(message).includes('"name":"2"'));
    expect(seen).to.have.deep.nested.property('filesystem.entry.metadata', metadata);
    stream.leave();
    const again = await octets('?path=/tmp/tagged/1', 'x');
    expect(again.json).to.deep.equal([{ path: '/tmp/tagged/1', name: '1', type: 'file' }]);
  });

  it('refuse invalid metadata by the name of its header', async () => {
    const refused = async (headers: Record<string, string>): Promise<unknown> => {
      const { status, json } = await octets('?path=/tmp/refused', 'x', headers);
      return [status, (json as Json)['message']];
    };
    const ofKey = 'must have a key of 1 to 246 bytes';
    expect(await refused({ 'x-metadata-': 'b' })).to.deep.equal([400, `x-metadata-: ${ofKey}`]);
    const long = `x-metadata-${'k'.repeat(247)}`;
    expect(await refused({ [long]: 'b' })).to.deep.equal([400, `${long}: ${ofKey}`]);
    expect(await refused({ 'x-metadata-a': 'é' })) //
      .to.deep.equal([400, 'x-metadata-a: must be printable ASCII']);
    expect(await refused({ 'x-metadata-a': 'x'.repeat(4_096 - 10), 'x-metadata-b': '' }))
      .to.deep //
      .equal([400, 'x-metadata-b: exceeds 4096 bytes of metadata, with 9 bytes for each key']);
    expect((await read('/tmp/refused')).status).to.equal(404);
  });

  it('refuse metadata for a driver that does not support it, without a write', async () => {
    const files = new MemoryFiles();
    const { processes } = served().driver.driver;
    const driver = { files, processes, exec: () => Promise.reject(new Error('nothing runs')) };
    const other = await aServedSandbox({ driver, clock: systemClock(), sandboxId: 'a' });
    const headers = { 'content-type': 'application/octet-stream', 'x-metadata-a': 'b' };
    const answer = await sent(other.port, '/files?path=/tmp/x', { body: 'x', headers });
    const { code, message } = JSON.parse(String(await buffer(answer))) as Json;
    const gone = await sent(other.port, '/files?path=/tmp/x', { method: 'GET' });
    other.stop();

    expect([code, message]).to.deep.equal([400, 'x-metadata-a: no-metadata']);
    expect(gone.statusCode).to.equal(404);
  });

  it('resolve the name of a part below the home, or refuse it', async () => {
    const named = async (name: Buffer | string): Promise<readonly unknown[]> => {
      const [before, after] = part('NAME', 'x').split('NAME');
      const body = Buffer.concat(
        [`--x\r\n${before}`, name, `${after}\r\n--x--\r\n`].map((each) => Buffer.from(each)),
      );
      const headers = { 'content-type': 'multipart/form-data; boundary=x' };
      const { status, json } = await write('', body, headers);
      return [status, status === 200 ? (json as Json[])[0]?.['path'] : (json as Json)['code']];
    };
    expect(await named('../../../tmp/above')).to.deep.equal([200, '/home/sandbox/tmp/above']);
    expect(await named('/tmp/../tmp/./dots')).to.deep.equal([200, '/tmp/dots']);
    expect(await named('/tmp/half \ud800 surrogate')).to.deep.equal([
      200,
      '/tmp/half \ufffd surrogate',
    ]);
    for (const [what, name] of [
      ['no folder above', '..'],
      ['a NUL', '/tmp/a\0b'],
      ['a long name', `/tmp/${'x'.repeat(5_000)}`],
      ['a long path', `/tmp${'/x'.repeat(5_000)}`],
      ['the home of another', '~root/x'],
      ['a folder', '/tmp/'],
    ] as const)
      expect(await named(name), what).to.deep.equal([400, 400]);
    expect(await named('/proc/self/mem')).to.deep.equal([403, 403]);
    expect(await named(Buffer.of(0xed, 0xa0, 0x80))).to.have.property('0', 200);
  });

  it('refuse a form with an endless head', async () => {
    const endless = `--x\r\nContent-Disposition: form-data; name="${'x'.repeat(1 << 20)}`;
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    expect(await write('', endless, headers)).to.have.property('status', 400);
  });

  it('write only to the requested file, even if links change in the meantime', async () => {
    const { driver, sandboxId } = served();
    const swap =
      'cd /tmp; mkdir -p real; while [ ! -e enough ]; do ln -sfn real d; ln -sfn / d; done';
    const swapping = driver.sh(sandboxId, swap);
    const told = new Set<number>();
    for (let at = 0; at < 100; at += 1)
      told.add((await octets(`?path=/tmp/d/etc/link-${at}`, 'x')).status);
    await driver.sh(sandboxId, 'touch /tmp/enough');
    await swapping;

    for (const status of told) expect(status).to.be.oneOf([200, 400, 403, 404, 409, 412]);
    expect(existsSync('/etc/link-0'), 'the host has none of it').to.equal(false);
    expect(readdirSync('/etc').filter((name) => name.startsWith('link-'))).to.deep.equal([]);
  });

  it('refuse ten thousand parts', async () => {
    const parts = Array.from({ length: 10_000 }, (_, at) => part(`/tmp/parts/${at}`, ''));
    const answer = await form('', parts);
    expect(answer.status).to.equal(400);
    expect(JSON.stringify(answer.json)).to.contain('more than 1000 files');
  });
});

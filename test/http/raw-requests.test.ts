import { expect } from 'chai';
import { once } from 'node:events';
import {
  connectRaw,
  exchangeRaw,
  HttpClient,
  parseRaw,
  type RawConnection,
} from '../support/harness/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';

const MIB = 1_048_576;

describe('bytes on a connection', () => {
  let server: TestServer;
  let key: string;
  beforeEach(async () => {
    server = await aServer();
    key = server.tenant.key ?? '';
  });
  afterEach(() => server.stop());

  const exchange = async (text: string | Buffer) => parseRaw(await exchangeRaw(server.port, text));
  const post = (headers: string, body = ''): string =>
    `POST /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${key}\r\nContent-Type: application/json\r\n${headers}\r\n${body}`;

  /** Resolves once so many bytes of a body have left this process. */
  const written = ({ socket }: RawConnection, size: number): Promise<void> =>
    new Promise((resolve, reject) => {
      socket.write(Buffer.alloc(size, 0x20), (error) => (error ? reject(error) : resolve()));
    });

  const expectError = (
    answer: ReturnType<typeof parseRaw>,
    status: number,
    errorCode: string,
  ): void => {
    expect([answer.status, answer.json.errorCode]).to.deep.equal([status, errorCode]);
    expect(answer.json.error).to.be.a('string').that.is.not.empty;
    expect(answer.headers['content-type']).to.equal('application/json; charset=utf-8');
    expect(answer.headers['x-request-id']).to.match(/^[A-Za-z0-9._-]{1,128}$/);
  };

  for (const [name, text] of [
    ['no HTTP', 'hello\r\n\r\n'],
    ['a TLS hello', Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0])],
    ['an unknown method', 'HELLO / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an unknown version', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['a space before a colon', 'GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n'],
    ['a NUL in a header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n'],
    [
      'two lengths',
      'POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    ],
    ['a negative length', 'POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}'],
    [
      'length and chunks at once',
      'POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'chunks that are not last',
      'POST /sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
    ],
    ['a folded header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\nB\r\n\r\n'],
  ] as const) {
    it(`that are ${name} get 400 and close the connection`, async () => {
      expectError(await exchange(text), 400, 'INVALID_ARGUMENT');
    });
  }

  it('without a Host get 400, except in HTTP/1.0', async () => {
    const answer = await exchange('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n');
    expectError(answer, 400, 'INVALID_ARGUMENT');
    expect(answer.json.detail).to.deep.equal({ field: 'Host' });
    expect((await exchange('GET /healthz HTTP/1.0\r\n\r\n')).status).to.equal(200);
  });

  it('with 20 kB of headers get 431', async () => {
    expectError(
      await exchange(`GET /healthz HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`),
      431,
      'REQUEST_HEADERS_TOO_LARGE',
    );
    const many = Array.from({ length: 1_000 }, (_, n) => `Header-${n}: ${'b'.repeat(8)}\r\n`).join(
      '',
    );
    expectError(
      await exchange(`GET /healthz HTTP/1.1\r\nHost: x\r\n${many}\r\n`),
      431,
      'REQUEST_HEADERS_TOO_LARGE',
    );
    expectError(
      await exchange(`GET /${'p'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`),
      431,
      'REQUEST_HEADERS_TOO_LARGE',
    );
  });

  it('that arrive too slowly are cut off, in headers and bodies', async () => {
    const hasty = await aServer({ limits: { headersTimeoutMs: 300, requestTimeoutMs: 600 } });
    key = hasty.tenant.key ?? '';
    for (const start of [
      'GET /',
      'GET /healthz HTTP/1.1\r\nHost: x\r\nA: ',
      post('Content-Length: 1000\r\n', '{"poolName":"'),
      post('Transfer-Encoding: chunked\r\n', '5\r\n{"x":\r\n'),
    ]) {
      const connection = await connectRaw(hasty.port);
      connection.socket.write(start);
      const drip = setInterval(() => connection.socket.write('a'), 50);
      try {
        const text = await connection.closed();
        if (!start.includes('chunked')) expectError(parseRaw(text), 408, 'REQUEST_TIMEOUT');
      } finally {
        clearInterval(drip);
      }
    }
    await hasty.stop();
  });

  it('of an endless body are cut off', async () => {
    const connection = await connectRaw(server.port);
    connection.socket.write(post('Transfer-Encoding: chunked\r\n'));
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const pump = (): void => {
      while (
        !connection.socket.destroyed &&
        connection.socket.writable &&
        connection.socket.write(chunk)
      );
    };
    connection.socket.on('drain', pump);
    pump();
    expectError(parseRaw(await connection.closed()), 413, 'PAYLOAD_TOO_LARGE');
    expect(connection.socket.bytesWritten).to.be.below(64 * MIB);
  });

  it('of a too large body get an answer even if the client reads only after writing', async () => {
    const connection = await connectRaw(server.port);
    connection.socket.pause();
    connection.socket.write(post(`Content-Length: ${5 * MIB}\r\n`));
    await written(connection, 5 * MIB);
    connection.socket.resume();
    expectError(parseRaw(await connection.closed()), 413, 'PAYLOAD_TOO_LARGE');
  });

  it('of a too large body get an answer even if the server was stopped in the meantime', async () => {
    const connection = await connectRaw(server.port);
    connection.socket.pause();
    connection.socket.write(post(`Content-Length: ${5 * MIB}\r\n`));
    await server.anyone.get('/healthz'); // behind it
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
    await written(connection, 5 * MIB);
    connection.socket.resume();
    expectError(parseRaw(await connection.closed()), 413, 'PAYLOAD_TOO_LARGE');
  });

  it('of a request refused early get an answer even if the client reads last and closes', async () => {
    const connection = await connectRaw(server.port);
    connection.socket.pause();
    const stranger = post(`Connection: close\r\nContent-Length: ${5 * MIB}\r\n`).replace(key, 'no');
    connection.socket.write(stranger);
    await server.anyone.get('/healthz'); // behind it
    await written(connection, 5 * MIB);
    connection.socket.resume();
    expectError(parseRaw(await connection.closed()), 401, 'INVALID_API_KEY');
  });

  it('of a request refused early are read for at most 8 MiB while the client writes', async () => {
    const connection = await connectRaw(server.port, { allowHalfOpen: true });
    connection.socket.write(post('Content-Length: 50000000000\r\n'));
    const piece = Buffer.alloc(0x10000, 0x20);
    const pump = (): void => {
      while (connection.socket.bytesWritten < 256 * MIB && connection.socket.write(piece));
    };
    connection.socket.on('drain', pump);
    pump();
    expectError(parseRaw(await connection.closed()), 413, 'PAYLOAD_TOO_LARGE');
    expect(connection.socket.bytesWritten).to.be.below(64 * MIB);
  });

  it('behind an answer that closes the connection are ignored', async () => {
    const connection = await connectRaw(server.port, { allowHalfOpen: true });
    connection.socket.write(post(`Content-Length: ${2 * MIB}\r\n`));
    await once(connection.socket, 'end');
    connection.socket.write(Buffer.alloc(2 * MIB - 1, 0x20));
    await server.anyone.get('/healthz'); // behind it
    connection.socket.write(' GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: last\r\n\r\n');
    await server.anyone.get('/healthz');
    connection.socket.destroy();
    expectError(parseRaw(connection.received()), 413, 'PAYLOAD_TOO_LARGE');
    expect(server.log.map(({ fields }) => fields['requestId'])).not.to.include('last');
  });

  it('of a body announced as too large are not awaited', async () => {
    expectError(await exchange(post('Content-Length: 50000000000\r\n')), 413, 'PAYLOAD_TOO_LARGE');
  });

  it('of a malformed chunk get 400', async () => {
    for (const body of ['zz\r\n', '2\r\n{}x\r\n', 'FFFFFFFFFFFFFFFFF\r\n']) {
      expectError(
        await exchange(post('Transfer-Encoding: chunked\r\n', body)),
        400,
        'INVALID_ARGUMENT',
      );
    }
  });

  it('in chunks of one byte are read', async () => {
    const chunks = [...'{"poolName":"nope"}'].map((byte) => `1;ext=1\r\n${byte}\r\n`).join('');
    expectError(
      await exchange(
        post(
          'Transfer-Encoding: chunked\r\nConnection: close\r\n',
          `${chunks}0\r\nTrailer: x\r\n\r\n`,
        ),
      ),
      404,
      'POOL_NOT_FOUND',
    );
  });

  it('with a content encoding are refused', async () => {
    const answer = await exchange(
      post('Transfer-Encoding: gzip, chunked\r\nConnection: close\r\n', '0\r\n\r\n'),
    );
    expectError(answer, 415, 'UNSUPPORTED_MEDIA_TYPE');
  });

  describe('held back by Expect', () => {
    it('are requested when they can be read', async () => {
      const connection = await connectRaw(server.port);
      connection.socket.write(
        post('Content-Length: 19\r\nExpect: 100-continue\r\nConnection: close\r\n'),
      );
      await once(connection.socket, 'data');
      expect(connection.received()).to.equal('HTTP/1.1 100 Continue\r\n\r\n');
      connection.socket.write('{"poolName":"nope"}');
      expectError(
        parseRaw((await connection.closed()).replace('HTTP/1.1 100 Continue\r\n\r\n', '')),
        404,
        'POOL_NOT_FOUND',
      );
    });

    it('are never requested if they are too large, or the key is wrong', async () => {
      expectError(
        await exchange(post('Content-Length: 2000000\r\nExpect: 100-continue\r\n')),
        413,
        'PAYLOAD_TOO_LARGE',
      );
      const answer = await exchange(
        'POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
      );
      expectError(answer, 401, 'API_KEY_REQUIRED');
    });

    it('with another expectation are read as they arrive', async () => {
      expectError(
        await exchange(
          post('Content-Length: 19\r\nExpect: tea\r\nConnection: close\r\n', '{"poolName":"nope"}'),
        ),
        404,
        'POOL_NOT_FOUND',
      );
    });
  });

  it('of many requests at once are answered in order', async () => {
    const text = await exchangeRaw(
      server.port,
      `${'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3)}GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal([
      'HTTP/1.1 200',
      'HTTP/1.1 200',
      'HTTP/1.1 200',
      'HTTP/1.1 404',
    ]);
  });

  it('that stop midway leave nothing behind', async () => {
    for (const text of [
      post('Content-Length: 1000\r\n', '{'),
      'GET /healthz HTTP/1.1\r\nHo',
      post('Transfer-Encoding: chunked\r\n', '5\r\n{'),
    ]) {
      const connection = await connectRaw(server.port);
      connection.socket.write(text);
      connection.socket.resetAndDestroy();
      await connection.closed();
    }
    const client = new HttpClient(server.port, key);
    expect((await client.get('/sandboxes')).status).to.equal(200);
    client.close();
    expect(server.log.filter(({ level }) => level === 'error' || level === 'warn')).to.deep.equal(
      [],
    );
  });
});

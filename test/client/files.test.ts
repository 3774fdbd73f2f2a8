import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { ApiError, ConnectionFailed } from '../../src/cli/client/api-error.ts';
import { readContent, unpackArchive, writeFile } from '../../src/cli/client/files.ts';
import { HttpExchanges } from '../../src/cli/client/http-exchange.ts';
import { SandpoolClient } from '../../src/cli/client/sandpool-client.ts';
import { aServer, type TestServer } from '../http/a-server.ts';
import { tarOf } from '../support/builders/an-oci-layout.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const HOME = '/home/sandbox';

describe('files with the client', () => {
  let server: TestServer;
  let client: SandpoolClient;
  let id: string;
  beforeEach(async () => {
    server = await aServer();
    const { operations } = server;
    client = new SandpoolClient({
      server: `http://127.0.0.1:${server.port}`,
      apiKey: await operations.key('blue', 'ada'),
    });
    await client.call('createPool', {
      body: { name: 'shells', templateName: 'default', replicas: 2 },
    });
    const { sandbox } = await client.call('claimSandbox', { body: { poolName: 'shells' } });
    id = sandbox.sandboxId;
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  const contentOf = async (path: string | Buffer): Promise<string> =>
    (await buffer((await readContent(client, { sandboxId: id, path })).bytes)).toString();
  const write = (path: string | Buffer, text: string, options = {}) =>
    writeFile(client, { sandboxId: id, path }, { content: pieces(text), ...options });

  it('can be written, read, listed, moved and removed', async () => {
    const written = await write(`${HOME}/a/note`, 'hello', { mode: 0o750, parents: true });
    const place = { sandboxId: id, path: `${HOME}/a/note` };
    const { kind, size, mode, close } = await readContent(client, place);
    close();

    expect(written).to.include({ path: `${HOME}/a/note`, size: 5, mode: '0750' });
    expect({ kind, size, mode }).to.deep.equal({ kind: 'file', size: 5, mode: 0o750 });
    expect(await contentOf(`${HOME}/a/note`)).to.equal('hello');
    const params = { sandboxId: id };
    await client.call('makeFolder', { params, body: { path: `${HOME}/b` } });
    const renaming = { from: `${HOME}/a/note`, to: `${HOME}/b/note` };
    await client.call('moveFile', { params, body: renaming });
    const listing = { path: HOME, depth: 2 };
    const first = await client.call('listFiles', { params, query: { ...listing, limit: 2 } });
    const rest = await client.call('listFiles', {
      params,
      query: { ...listing, cursor: first.nextCursor },
    });
    expect([...first.items, ...rest.items].map(({ path }) => path)).to.deep.equal([
      `${HOME}/a`,
      `${HOME}/b`,
      `${HOME}/b/note`,
    ]);
    await client.call('removeFile', { params, query: { path: `${HOME}/b`, recursive: true } });
    const gone = await rejection(contentOf(`${HOME}/b/note`));
    expect(gone).to.be.instanceOf(ApiError).and.have.property('errorCode', 'FILE_NOT_FOUND');
  });

  it('are named by bytes if they are not UTF-8', async () => {
    const path = Buffer.concat([Buffer.from(`${HOME}/`), Buffer.from([0xff, 0xfe])]);
    await write(path, 'strange');
    expect(await contentOf(path)).to.equal('strange');
  });

  it('can be unpacked from an archive, and read as one', async () => {
    const archive = await tarOf([{ name: 'note', content: 'hello' }]);
    const tree = { sandboxId: id, path: `${HOME}/tree` };
    const unpacked = await unpackArchive(client, tree, pieces(archive));
    const read = await readContent(client, tree);

    expect(unpacked).to.deep.equal({ entries: 1, bytes: 5 });
    expect([read.kind, read.size, read.mode]).to.deep.equal(['folder', undefined, undefined]);
    expect((await buffer(read.bytes)).toString('latin1'))
      .to.include('note')
      .and.include('hello');
  });

  it('are not sent further if the service refuses first', async () => {
    const sent = new Endless();
    const refused = await rejection(
      writeFile(
        client,
        { sandboxId: id, path: `${HOME}/no/such/folder` },
        { content: sent.pieces() },
      ),
    );

    expect(refused).to.be.instanceOf(ApiError).and.have.property('errorCode', 'FILE_NOT_FOUND');
    await sent.ended;
  });

  it('stay unchanged, with the reason, if the content cannot be read to its end', async () => {
    const failing = async function* () {
      yield Buffer.from('new');
      throw new Error('the disk is broken');
    };
    await write(`${HOME}/note`, 'old');
    const failed = await rejection(
      writeFile(client, { sandboxId: id, path: `${HOME}/note` }, { content: failing() }),
    );

    expect(failed).to.have.property('message', 'the disk is broken');
    expect(await contentOf(`${HOME}/note`)).to.equal('old');
  });

  it('are cancelled by a signal, with its reason', async () => {
    const abort = new AbortController();
    const sent = new Endless(() => abort.abort(new Error('enough')));
    const place = { sandboxId: id, path: `${HOME}/note`, signal: abort.signal };
    const ended = await rejection(writeFile(client, place, { content: sent.pieces() }));

    expect(ended).to.have.property('message', 'enough');
    await sent.ended;
  });
});

describe('a stream of the client', () => {
  let respond: (request: IncomingMessage, response: ServerResponse) => void;
  const server = createServer((request, response) => respond(request, response));
  let exchanges: HttpExchanges;
  const exchange = { method: 'PUT', path: '/', deadlineMs: 300 };
  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    exchanges = new HttpExchanges(new URL(`http://127.0.0.1:${port}`), 'key');
  });
  afterEach(() => server.closeAllConnections());
  after(() => {
    exchanges.close();
    server.close();
  });

  it('is sent no faster than it is read, and ends if nothing is read', async () => {
    respond = () => {};
    const sent = new Endless();
    const failed = await rejection(
      exchanges.upload({ ...exchange, content: sent.pieces(), contentType: 'a/b' }),
    );

    expect(failed).to.be.instanceOf(ConnectionFailed).and.have.property('code', 'DEADLINE');
    await sent.ended;
  });

  it('waits for its own content without a limit', async () => {
    respond = (request, response) => void request.resume().on('end', () => response.end('{}'));
    let seenSilent = 0;
    const slow = async function* () {
      yield Buffer.from('a');
      for (; seenSilent < 5; seenSilent += 1)
        await rejection(exchanges.open({ ...exchange, method: 'GET' }));
      yield Buffer.from('b');
    };
    const answerAll = respond;
    respond = (request, response) =>
      request.method === 'GET' ? undefined : answerAll(request, response);

    const answer = await exchanges.upload({
      ...exchange,
      deadlineMs: 4 * exchange.deadlineMs,
      content: slow(),
      contentType: 'a/b',
    });

    expect([answer, seenSilent]).to.deep.equal([{}, 5]);
  });

  it('fails if the answer is truncated or stalls', async () => {
    let cut = (): void => {};
    respond = (_request, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('half');
      cut = () => void response.destroy();
    };
    const halves: (Error | undefined)[] = [];
    for (const isCut of [true, false]) {
      const deadlineMs = isCut ? NEVER_COMES_MS : 3_000; // its head comes in that time
      const { bytes } = await exchanges.download({ ...exchange, method: 'GET', deadlineMs });
      halves.push(
        await rejection(
          (async () => {
            for await (const piece of bytes) {
              expect(piece.toString()).to.equal('half');
              if (isCut) cut();
            }
          })(),
        ),
      );
    }

    expect(halves.map((error) => error?.name)).to.deep.equal([
      'ConnectionFailed',
      'ConnectionFailed',
    ]);
    expect(halves[0]?.message).to.match(/ broke$/);
    expect(halves[1]).to.have.property('code', 'DEADLINE');
  });
});

async function* pieces(content: string | Buffer): AsyncGenerator<Buffer, void, undefined> {
  yield Buffer.from(content);
}

/** Content that nobody takes to its end; more than buffers on the way hold is a fault. */
class Endless {
  readonly ended: Promise<void>;
  readonly #first: () => void;
  #end: () => void = () => {};

  constructor(first: () => void = () => {}) {
    this.#first = first;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  async *pieces(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (let sent = 0; sent < 64 << 20; sent += 64 << 10) {
        yield Buffer.alloc(64 << 10);
        this.#first();
      }
      throw new Error('all of it was taken');
    } finally {
      this.#end();
    }
  }
}

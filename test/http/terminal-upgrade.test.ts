import { expect } from 'chai';
import { once } from 'node:events';
import { Refusal, sandboxNotRunning, unavailable } from '../../src/model/refusals.ts';
import { tooManyTerminals } from '../../src/model/limit-refusals.ts';
import {
  aTerminalDaemon,
  attached,
  PATH,
  rawUpgrade,
  SANDBOX,
  type TerminalDaemon,
} from './terminal-support.ts';
import { eventually } from '../support/harness/eventually.ts';

describe('the upgrade to a terminal', () => {
  let daemon: TerminalDaemon;
  beforeEach(async () => {
    daemon = await aTerminalDaemon({ allowedOrigins: ['https://console.example'] });
  });
  afterEach(() => daemon.close());

  it('opens with the token of the query and the requested size', async () => {
    await attached(daemon, 'token=good&cols=120&rows=33');
    expect(daemon.asked).to.deep.equal([
      { clusterId: 'local', sandboxId: SANDBOX, token: 'good', cols: 120, rows: 33 },
    ]);
  });

  it('is marked as linked if it came over a link', async () => {
    const linked = await aTerminalDaemon({ isLinked: () => true });
    await attached(linked);
    expect(linked.asked[0]).to.include({ token: 'good', overLink: true });
    await linked.close();
  });

  it('defaults to 80 by 24', async () => {
    await attached(daemon);
    expect(daemon.asked[0]).to.include({ cols: 80, rows: 24 });
  });

  it('works the same under /v1', async () => {
    daemon.refuseWith = tooManyTerminals('the sandbox has', 16);
    expect((await rawUpgrade(daemon.port, `/v1${PATH}?token=good`)).status).to.equal(429);
  });

  it('accepts the token as a subprotocol and returns the framing protocol', async () => {
    const { ws } = await attached(daemon, '', ['sandpool.terminal.v1', 'sandpool.token.s3cret']);
    expect(daemon.asked[0]?.token).to.equal('s3cret');
    expect(ws.protocol).to.equal('sandpool.terminal.v1');
  });

  it('admits a browser that offers the token only', async () => {
    const { ws } = await attached(daemon, '', ['sandpool.token.s3cret']);
    expect(ws.protocol).to.equal('sandpool.token.s3cret');
  });

  it('returns the request id of the client on success', async () => {
    const ws = daemon.open('token=good', [], { headers: { 'x-request-id': 'mine.1' } });
    const [response] = (await once(ws, 'upgrade')) as [{ headers: Record<string, string> }];
    expect(response.headers['x-request-id']).to.equal('mine.1');
  });

  const INVALID = { error: 'invalid or expired token', errorCode: 'INVALID_TOKEN' };

  it('returns 401 with the same body for every problem of the token', async () => {
    expect((await rawUpgrade(daemon.port, PATH)).body).to.deep.equal(INVALID);
    expect((await rawUpgrade(daemon.port, `${PATH}?token=`)).body).to.deep.equal(INVALID);
    expect((await rawUpgrade(daemon.port, `${PATH}?token=a&token=b`)).body).to.deep.equal(INVALID);
    expect(
      (
        await rawUpgrade(daemon.port, `${PATH}?token=a`, {
          'Sec-WebSocket-Protocol': 'sandpool.token.b',
        })
      ).body,
    ).to.deep.equal(INVALID);
    expect(
      (await rawUpgrade(daemon.port, `${PATH}?token=${'x'.repeat(2_000)}`)).body,
    ).to.deep.equal(INVALID);
    expect(daemon.asked).to.deep.equal([]);
    for (const code of [
      'INVALID_API_KEY',
      'SANDBOX_NOT_FOUND',
      'NOT_FOUND',
      'FORBIDDEN',
    ] as const) {
      daemon.refuseWith = new Refusal(code, `something about ${code}`, { detail: { told: true } });
      const answer = await rawUpgrade(daemon.port, `${PATH}?token=used`);
      expect(answer.status).to.equal(401);
      expect(answer.body).to.deep.equal(INVALID);
    }
  });

  it('returns a complete refusal: JSON, length, request id, close', async () => {
    const answer = await rawUpgrade(daemon.port, PATH, { 'X-Request-Id': 'abc-1' });
    expect(answer.status).to.equal(401);
    expect(answer.headers).to.include({
      'content-type': 'application/json; charset=utf-8',
      connection: 'close',
      'x-request-id': 'abc-1',
    });
    expect(Number(answer.headers['content-length'])).to.equal(JSON.stringify(INVALID).length);
  });

  it('generates a request id if the client sends no valid one', async () => {
    expect((await rawUpgrade(daemon.port, PATH)).headers['x-request-id']).to.match(
      /^[A-Za-z0-9._-]{1,128}$/,
    );
    expect(
      (await rawUpgrade(daemon.port, PATH, { 'X-Request-Id': 'no good' })).headers['x-request-id'],
    ).to.match(/^[A-Za-z0-9._-]{1,128}$/);
  });

  it('returns 403 to pages of another origin, and keeps the token', async () => {
    for (const origin of [
      'https://evil.example',
      'null',
      `http://127.0.0.1:${daemon.port + 1}`,
      'https://console.example.evil.example',
    ]) {
      const answer = await rawUpgrade(daemon.port, `${PATH}?token=good`, { Origin: origin });
      expect(answer.status, origin).to.equal(403);
      expect(answer.body.errorCode).to.equal('FORBIDDEN');
    }
    expect(daemon.asked).to.deep.equal([]);
  });

  it("admits the daemon's own pages and those of allowed origins", async () => {
    await attached(daemon, 'token=good', [], { origin: `http://127.0.0.1:${daemon.port}` });
    await attached(daemon, 'token=good', [], { origin: 'https://console.example' });
    expect(daemon.asked).to.have.length(2);
  });

  it('returns 409 for a sandbox that is not Running', async () => {
    daemon.refuseWith = sandboxNotRunning('Stopping');
    const answer = await rawUpgrade(daemon.port, `${PATH}?token=good`);
    expect(answer.status).to.equal(409);
    expect(answer.body).to.deep.equal({
      error: 'the sandbox is Stopping, not Running',
      errorCode: 'SANDBOX_NOT_RUNNING',
    });
  });

  it('returns 429 with Retry-After when the sandbox has too many terminals', async () => {
    daemon.refuseWith = tooManyTerminals('the sandbox has', 16);
    const answer = await rawUpgrade(daemon.port, `${PATH}?token=good`);
    expect(answer.status).to.equal(429);
    expect(answer.body.errorCode).to.equal('TOO_MANY_TERMINALS');
    expect(answer.headers['retry-after']).to.equal('5');
  });

  it('returns 503 with Retry-After if a component is unavailable', async () => {
    daemon.refuseWith = unavailable('the spawner is not running');
    const answer = await rawUpgrade(daemon.port, `${PATH}?token=good`);
    expect([answer.status, answer.body.errorCode, answer.headers['retry-after']]).to.deep.equal([
      503,
      'UNAVAILABLE',
      '1',
    ]);
  });

  it('returns 500 without internals for an unexpected error', async () => {
    daemon.refuseWith = new Error('secret path /x');
    const answer = await rawUpgrade(daemon.port, `${PATH}?token=good`);
    expect(answer.status).to.equal(500);
    expect(answer.body).to.deep.equal({
      error: 'internal error',
      errorCode: 'INTERNAL',
      detail: { requestId: answer.headers['x-request-id'] },
    });
  });

  for (const query of [
    'cols=0',
    'cols=1001',
    'rows=0',
    'rows=1e2',
    'rows=-1',
    'cols=',
    'cols=%20',
    'cols=80&cols=80',
  ]) {
    it(`returns 400 for ${query}`, async () => {
      const answer = await rawUpgrade(daemon.port, `${PATH}?token=good&${query}`);
      expect(answer.status).to.equal(400);
      expect(answer.body.errorCode).to.equal('INVALID_ARGUMENT');
      expect(answer.body.detail).to.deep.equal({ field: query.slice(0, 4) });
      expect(daemon.asked).to.deep.equal([]);
    });
  }

  for (const target of [
    '/',
    '/ws',
    `${PATH}/x`,
    PATH.replace('terminal', 'exec'),
    '/ws/clusters/local/sandboxes/%zz/terminal',
  ]) {
    it(`returns 404 for an upgrade of ${target}`, async () => {
      const answer = await rawUpgrade(daemon.port, `${target}?token=good`);
      expect(answer.status).to.equal(404);
      expect(answer.body.errorCode).to.equal('NOT_FOUND');
    });
  }

  it('returns 404 for the name of another cluster', async () => {
    const answer = await rawUpgrade(daemon.port, `${PATH.replace('local', 'mars')}?token=good`);
    expect([answer.status, answer.body.errorCode]).to.deep.equal([404, 'CLUSTER_NOT_FOUND']);
  });

  it('returns 400 for a malformed handshake without using up the token', async () => {
    const bad = [
      { 'Sec-WebSocket-Key': undefined },
      { 'Sec-WebSocket-Key': 'short' },
      { 'Sec-WebSocket-Version': '7' },
      { Upgrade: 'h2c' },
    ];
    for (const headers of bad)
      expect((await rawUpgrade(daemon.port, `${PATH}?token=good`, headers)).status).to.equal(400);
    expect((await rawUpgrade(daemon.port, `${PATH}?token=good`, {}, 'POST')).status).to.equal(400);
    expect(daemon.asked).to.deep.equal([]);
  });

  it('returns its own 400, and hangs up, if the subprotocols are malformed', async () => {
    const answer = await rawUpgrade(daemon.port, `${PATH}?token=good`, {
      'Sec-WebSocket-Protocol': 'a,,b',
    });
    expect([answer.status, answer.body.errorCode]).to.deep.equal([400, 'INVALID_ARGUMENT']);
    expect(daemon.terminals[0]?.closes).to.equal(1);
  });

  it('hangs up a terminal that opens after its client has left', async () => {
    let release = (): void => {};
    daemon.hold = new Promise((resolve) => {
      release = resolve;
    });
    const ws = daemon.open();
    await eventually(() => daemon.asked.length === 1, 'the terminal is asked for');
    const left = new Promise((resolve) => {
      ws.once('close', resolve);
    });
    ws.terminate();
    await left;
    release();
    await eventually(() => (daemon.terminals[0]?.closes ?? 0) > 0, 'the terminal is closed');
  });

  it('returns 503 if the terminal does not open in 10 s, and closes it when it opens later', async () => {
    let release = (): void => {};
    daemon.hold = new Promise((resolve) => {
      release = resolve;
    });
    const answering = rawUpgrade(daemon.port, `${PATH}?token=good`);
    await eventually(() => daemon.asked.length === 1, 'the terminal is asked for');
    daemon.clock.advance(10_000);
    expect((await answering).status).to.equal(503);
    release();
    await eventually(() => (daemon.terminals[0]?.closes ?? 0) > 0, 'the late terminal is closed');
  });

  it('returns 503 while the daemon stops', async () => {
    await daemon.stopTerminals();
    const answer = await rawUpgrade(daemon.port, `${PATH}?token=good`);
    expect([answer.status, answer.body.errorCode]).to.deep.equal([503, 'UNAVAILABLE']);
    expect(daemon.asked).to.deep.equal([]);
  });
});

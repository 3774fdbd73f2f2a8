import { expect } from 'chai';
import { TerminalUnderTest, tokenFor } from '../support/a-terminal.ts';
import { DaemonUnderTest, within } from '../support/a-daemon.ts';
import { Dice, hostileBody, hostileSegment, hostileValue, mutated } from '../support/hostile-values.ts';
import { connectRaw, type HttpAnswer, type HttpClient } from '../support/http-client.ts';
import { claim, clear, run, stocked } from '../support/on-a-daemon.ts';

const REQUESTS_PER_ROUTE = 300;
const AT_ONCE = 8;

interface Row { readonly method: string; readonly path: string; readonly good?: Readonly<Record<string, unknown>>; readonly admin?: true }

const ROWS: readonly Row[] = [
  { method: 'POST', path: '/sandboxes', good: { poolName: 'default' } },
  { method: 'GET', path: '/sandboxes' },
  { method: 'GET', path: '/sandboxes/{id}' },
  { method: 'DELETE', path: '/sandboxes/{id}' },
  { method: 'POST', path: '/sandboxes/{id}/exec', good: { command: 'true', timeoutSeconds: 2 } },
  { method: 'POST', path: '/sandboxes/{id}/exec-token', good: {} },
  { method: 'PUT', path: '/sandboxes/{id}/idle-timeout', good: { idleTimeout: '5m' } },
  { method: 'POST', path: '/sandboxpools', good: { name: 'more', templateName: 'default', replicas: 1 } },
  { method: 'GET', path: '/sandboxpools' },
  { method: 'GET', path: '/sandboxpools/{pool}' },
  { method: 'PUT', path: '/sandboxpools/{pool}', good: { replicas: 2 } },
  { method: 'DELETE', path: '/sandboxpools/{pool}' },
  { method: 'POST', path: '/api-keys', good: {} },
  { method: 'POST', path: '/admin/api-keys', good: { team: 'a', user: 'b' }, admin: true },
  { method: 'GET', path: '/healthz' },
  { method: 'GET', path: '/readyz' },
];

describe('hostile bytes to the real daemon', function () {
  this.timeout(60_000);
  const seed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000_000);
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let admin: HttpClient;
  let id: string;

  before(async () => {
    console.info(`    HOSTILE_SEED=${seed}`);
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '4', '--quotas-replicas', '12', '--quotas-pools', '4', '--log-level', 'warn']);
    client = daemon.client();
    admin = daemon.client(daemon.adminKey);
  });

  after(() => daemon.dispose());

  /** What a round took away from the next is there again. */
  beforeEach(async () => {
    await clear(client);
    for (const { name } of (await client.get('/sandboxpools')).json.items ?? []) if (name !== 'default') await client.delete(`/sandboxpools/${String(name)}?force=true`);
    // One of them may have deleted it.
    await within(10_000, 'the default pool', async () => (await client.put('/sandboxpools/default', { replicas: 4 })).status === 200 ||
      (await client.post('/sandboxpools', { name: 'default', templateName: 'default', replicas: 4 })).status === 201 || undefined);
    await stocked(client, 4);
    id = await claim(client);
    expect((await run(client, id, 'echo served')).stdout).to.equal('served\n');
    await client.post('/sandboxpools', { name: 'target', templateName: 'default', replicas: 1 });
  });

  afterEach(() => {
    expect(daemon.run.process.exitCode, daemon.run.stderr().slice(-2_000)).to.equal(null);
    expect(daemon.run.process.signalCode).to.equal(null);
    const bad = daemon.run.stderr().split('\n').filter((line) => line !== '' && (!line.startsWith('{') || /"level":"(error|fatal)"|unhandled|uncaught/i.test(line)));
    expect(bad).to.deep.equal([]);
  });

  const send = (dice: Dice, row: Row): Promise<HttpAnswer> => {
    const known: Record<string, string> = { id, pool: 'target' };
    let path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (dice.chance(0.6) ? known[name] ?? '' : hostileSegment(dice)));
    if (dice.chance(0.4)) {
      const names = ['limit', 'offset', 'phase', 'poolName', 'all', 'team', 'force', 'x', hostileSegment(dice)] as const;
      path += `?${Array.from({ length: 1 + dice.below(3) }, () => `${dice.pick(names)}=${hostileSegment(dice)}`).join(dice.pick(['&', '&&', ';']))}`;
    }
    const headers: Record<string, string> = {};
    if (dice.chance(0.1)) headers['Content-Type'] = dice.pick(['text/plain', 'application/json; charset=utf-7', 'é', 'application/json;;', '']);
    if (dice.chance(0.05)) headers['Content-Encoding'] = dice.pick(['gzip', 'identity', 'x']);
    if (dice.chance(0.1)) headers['X-Request-Id'] = dice.pick(['ok', '', '<x>', 'y'.repeat(500)]);
    if (dice.chance(0.1)) headers['Idempotency-Key'] = dice.pick(['a', '', 'y'.repeat(500)]);
    if (dice.chance(0.05)) headers['SERVICE-API-KEY'] = dice.pick(['', 'spk_', 'spk_aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'x'.repeat(10_000)]);
    const raw = row.good || dice.chance(0.1) ? hostileBody(dice, row.good ?? {}) : undefined;
    const as = row.admin || dice.chance(0.2) ? admin : client;
    return as.send(dice.chance(0.02) ? dice.pick(['PATCH', 'OPTIONS', 'POST', 'GET', 'PUT']) : row.method, path, raw === undefined ? { headers } : { raw, headers });
  };

  const check = ({ status, headers, json, text }: HttpAnswer, row: Row): void => {
    const context = `HOSTILE_SEED=${seed}, ${row.method} ${row.path}: ${status} ${text.slice(0, 300)}`;
    const honest = status === 503 && json.errorCode === 'UNAVAILABLE' && /^[1-9]\d*$/.test(headers['retry-after'] ?? '');
    expect(status < 500 || honest, context).to.equal(true);
    expect(headers['x-request-id'], context).to.match(/^[A-Za-z0-9._-]{1,128}$/);
    if (status >= 400) {
      expect(json.error, context).to.be.a('string').that.is.not.empty;
      expect(json.errorCode, context).to.match(/^[A-Z][A-Z_]+$/);
    }
    if (status === 429) expect(headers['retry-after'], context).to.match(/^[1-9]\d*$/);
  };

  for (const [place, row] of ROWS.entries()) {
    it(`${REQUESTS_PER_ROUTE} to ${row.method} ${row.path} are answered, never by a fault`, async () => {
      const dice = new Dice(seed + place);
      let left = REQUESTS_PER_ROUTE;
      const worker = async (): Promise<void> => {
        while (left-- > 0) check(await send(dice, row), row);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
    });
  }

  it('200 connections of mutated requests and upgrades end without harm', async () => {
    const dice = new Dice(seed + 1_000);
    const token = await tokenFor(client, id);
    const upgrade = Buffer.from(`GET /ws/clusters/local/sandboxes/${id}/terminal?token=${token} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`);
    const post = Buffer.from(`POST /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${client.key ?? ''}\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n{"poolName":"default"}`);
    for (let n = 0; n < 200; n += 1) {
      const connection = await connectRaw(daemon.run.port);
      connection.socket.end(mutated(dice, dice.pick([upgrade, post, Buffer.concat([post, upgrade]), Buffer.concat([upgrade, post])])));
      const text = await connection.closed();
      for (const [, status] of text.matchAll(/^HTTP\/1\.1 (\d+)/gm)) expect(Number(status) < 500 || Number(status) === 503, `HOSTILE_SEED=${seed}: ${text}`).to.equal(true);
    }
  });

  it('300 hostile frames to a terminal harm it alone, if at all', async () => {
    const dice = new Dice(seed + 2_000);
    for (let round = 0; round < 3; round += 1) {
      const terminal = await TerminalUnderTest.open(daemon, client, id, { protocols: ['sandpool.terminal.v1'] });
      for (let n = 0; n < 100 && terminal.socket.readyState === terminal.socket.OPEN; n += 1) {
        const frame = Buffer.from(JSON.stringify(dice.chance(0.5) ? { type: dice.pick(['resize', 'signal', 'x']), cols: hostileValue(dice), rows: hostileValue(dice), name: hostileValue(dice) } : hostileValue(dice)));
        if (dice.chance(0.8)) terminal.socket.send(frame.toString());
        else terminal.socket.send(mutated(dice, frame));
        if (dice.chance(0.05)) terminal.socket.ping(Buffer.alloc(dice.below(126)));
      }
      terminal.socket.close(dice.pick([1000, 1001, 3000, 4999]));
      await terminal.closed;
    }
  });
});

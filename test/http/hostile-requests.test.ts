import { expect } from 'chai';
import { errorCodesOf } from '../../src/http/openapi/operation-errors.ts';
import { routesOf } from '../../src/http/app.ts';
import type { Route } from '../../src/http/route.ts';
import { FakeOperations } from '../support/fake-operations.ts';
import { Dice, hostileBody, hostileSegment, mutated } from '../support/hostile-values.ts';
import { connectRaw, type HttpAnswer } from '../support/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';

const REQUESTS_PER_ROUTE = 2_000;
const AT_ONCE = 8;
/** What any operation may answer, whatever its own refusals are. */
const COMMON = ['INVALID_ARGUMENT', 'API_KEY_REQUIRED', 'INVALID_API_KEY', 'ADMIN_REQUIRED', 'NOT_FOUND', 'METHOD_NOT_ALLOWED', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'REQUEST_HEADERS_TOO_LARGE'];

const GOOD: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/sandboxes': { poolName: 'shells' },
  '/sandboxes/{sandboxId}/exec': { command: 'true' },
  '/sandboxes/{sandboxId}/idle-timeout': { idleTimeout: '5m' },
  '/sandboxpools': { name: 'more', templateName: 'default' },
  '/sandboxpools/{name}': { replicas: 2 },
  '/admin/api-keys': { team: 'a', user: 'b' },
};

describe('hostile requests', function () {
  this.timeout(120_000);
  const seed = Number(process.env.HOSTILE_SEED ?? Date.now() % 1_000_000_000);
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
  let server: TestServer;
  let sandboxId: string;

  before(async () => {
    console.info(`    HOSTILE_SEED=${seed}`);
    process.on('unhandledRejection', onUnhandled);
    server = await aServer();
    await server.tenant.post('/sandboxpools', { name: 'shells', templateName: 'default', replicas: 5_000 });
    sandboxId = (await server.tenant.post('/sandboxes', { poolName: 'shells' })).json.sandbox!.sandboxId!;
  });
  after(async () => {
    process.off('unhandledRejection', onUnhandled);
    await server.stop();
  });
  afterEach(() => {
    expect(unhandled).to.deep.equal([]);
    expect(server.log.filter(({ level }) => level === 'error')).to.deep.equal([]);
    server.log.length = 0;
  });

  const send = async (dice: Dice, row: Route): Promise<HttpAnswer> => {
    const known: Record<string, string> = { sandboxId, name: 'shells', ...(dice.chance(0.05) && row.path.includes('/api-keys/') ? await spareKey() : {}) };
    let path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (dice.chance(0.6) ? known[name] ?? '' : hostileSegment(dice)));
    if (dice.chance(0.4)) {
      const names = ['limit', 'offset', 'phase', 'poolName', 'all', 'team', 'force', 'x', hostileSegment(dice)] as const;
      path += `?${Array.from({ length: 1 + dice.below(3) }, () => `${dice.pick(names)}=${hostileSegment(dice)}`).join(dice.pick(['&', '&&', ';']))}`;
    }
    const headers: Record<string, string> = {};
    if (dice.chance(0.1)) headers['Content-Type'] = dice.pick(['text/plain', 'application/json; charset=utf-7', '\u00e9', 'application/json;;', '']);
    if (dice.chance(0.05)) headers['Content-Encoding'] = dice.pick(['gzip', 'identity', 'x']);
    if (dice.chance(0.1)) headers['X-Request-Id'] = dice.pick(['ok', '', '<x>', 'y'.repeat(500)]);
    if (dice.chance(0.05)) headers['SERVICE-API-KEY'] = dice.pick(['', 'spk_', 'spk_aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '\u00ff'.repeat(100), 'x'.repeat(10_000)]);
    const client = row.access === 'admin' || dice.chance(0.2) ? server.admin : server.tenant;
    const raw = row.body || dice.chance(0.1) ? hostileBody(dice, GOOD[row.path] ?? {}) : undefined;
    return await client.send(dice.chance(0.02) ? dice.pick(['PATCH', 'OPTIONS', 'POST', 'GET', 'PUT']) : row.method, path, raw === undefined ? { headers } : { raw, headers });
  };

  /** One that a request may revoke, under each of its names in a path. */
  const spareKey = async (): Promise<Record<string, string>> => {
    const { json } = await server.tenant.post('/api-keys', {});
    const [namespace = '', shortName = ''] = (json.name ?? '').split('/');
    return { keyId: json.keyId ?? '', namespace, shortName, name: encodeURIComponent(json.name ?? '') };
  };

  const checkAnswer = ({ status, headers, json, text }: HttpAnswer, rowsOfPath: readonly Route[]): void => {
    expect(status, text).to.be.within(200, 499);
    expect(headers['x-request-id']).to.match(/^[A-Za-z0-9._-]{1,128}$/);
    expect(headers['content-type']).to.equal('application/json; charset=utf-8');
    if (status >= 400) {
      expect(json.error).to.be.a('string').that.is.not.empty;
      expect(json.errorCode, text).to.be.oneOf([...COMMON, ...rowsOfPath.flatMap(errorCodesOf)]);
      expect(text.length).to.be.below(20_000);
      if (status === 429) expect(headers['retry-after']).to.match(/^[1-9][0-9]*$/);
    } else {
      const documented = rowsOfPath.some(({ answers }) => answers[status]?.safeParse(json).success === true);
      expect(documented, `${status} ${text.slice(0, 200)}`).to.equal(true);
    }
  };

  /** What a run of requests took away from the next is there again. */
  const restore = (): void => {
    const { pools, sandboxes } = server.operations;
    const pool = pools.get('team-blue/shells');
    const sandbox = sandboxes.get(sandboxId);
    if (!pool || !sandbox) throw new Error('what the requests aim at is gone');
    pools.set('team-blue/shells', { ...pool, deleting: false, replicas: 5_000 });
    sandboxes.clear();
    sandboxes.set(sandboxId, { ...sandbox, status: 'Running' });
  };

  const rows = routesOf(new FakeOperations());
  for (const [place, row] of rows.entries()) {
    it(`${REQUESTS_PER_ROUTE} to ${row.method} ${row.path} are answered as documented`, async () => {
      const dice = new Dice(seed + place);
      // A hostile segment or method may make it a request to a neighbour, such as `/sandboxes/` with nothing after it.
      const rowsOfPath = rows.filter(({ path }) => path.split('/')[1] === row.path.split('/')[1]);
      let left = REQUESTS_PER_ROUTE;
      let good = 0;
      const worker = async (): Promise<void> => {
        while (left > 0) {
          left -= 1;
          const answer = await send(dice, row);
          if (answer.status < 400) good += 1;
          try {
            checkAnswer(answer, rowsOfPath);
          } catch (error) {
            throw new Error(`with HOSTILE_SEED=${seed}: ${String(error)}`, { cause: error });
          }
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      if (!/^\/(admin\/)?api-keys\/\{/.test(row.path)) expect(good, 'some are good').to.be.greaterThan(0);
      restore();
    });
  }

  it('of 500 connections of mutated bytes end without harm', async () => {
    const dice = new Dice(seed + 1_000);
    const body = '{"poolName":"shells"}';
    const start = Buffer.from(`POST /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: k\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    for (let n = 0; n < 500; n += 1) {
      const connection = await connectRaw(server.port);
      connection.socket.end(mutated(dice, dice.chance(0.5) ? start : Buffer.concat([start, start])));
      const text = await connection.closed();
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d+)/g)) expect(Number(status), `HOSTILE_SEED=${seed}: ${text}`).to.be.below(500);
    }
    expect((await server.anyone.get('/healthz')).status).to.equal(200);
  });
});

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import Koa from 'koa';
import { Pool } from 'undici';
import { silentLog } from '../../src/contracts/log.ts';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import { readClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { answerOrders } from '../child.ts';
import type { BareOrder } from './bare.ts';
import { RawRecords } from './raw-records.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/**
 * The least that could promise what a claim does: reads a JSON body, counts a seat by one EVALSHA,
 * and claims a record by one conditional PUT over a kept connection.
 */

const SEAT = `
local total = tonumber(redis.call('HGET', KEYS[1], ':total') or 0) + 1
if total > tonumber(ARGV[2]) then return 'full' end
redis.call('HSET', KEYS[1], ARGV[1], 1, ':total', total)
return 'ok'`;

interface Parts {
  readonly api: ApiClient;
  readonly pool: Pool;
  readonly authorization: string;
  readonly redis: Redis;
  readonly seat: string;
  readonly records: RawRecords;
}

let parts: Parts | undefined;

const open = async ({
  kubeconfig,
  redisPort,
  namespace,
  count,
}: Extract<BareOrder, { kind: 'open' }>): Promise<number> => {
  const access = await readClusterAccess({ kubeconfig }, silentLog);
  const redis = new Redis(redisPort, '127.0.0.1');
  const api = apiServer({ metrics: silentMetrics, access, version: 'bench' }).lane('claims');
  parts = {
    api,
    redis,
    seat: String(await redis.script('LOAD', SEAT)),
    records: await RawRecords.make(api, namespace, count),
    pool: new Pool(access.server.origin, { connections: 32, pipelining: 1, connect: access.tls }),
    authorization: access.authorization() ?? '',
  };
  const app = new Koa({ env: 'production' });
  app.use(async (context) => {
    JSON.parse(await text(context.req));
    const record = await claim();
    context.status = 201;
    context.set('Content-Type', 'application/json; charset=utf-8');
    context.body = JSON.stringify({ sandbox: record });
  });
  const server = createServer({ noDelay: true });
  const handle = app.callback();
  server.on('request', (request, response) => {
    void handle(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
};

const claim = async (): Promise<unknown> => {
  if (!parts) throw new Error('it is not open');
  const { path, body, done } = parts.records.next();
  if ((await parts.redis.evalsha(parts.seat, 1, 'bench:seats', path, 1_000_000)) !== 'ok')
    throw new Error('no seat');
  const answer = await parts.pool.request({
    method: 'PUT',
    path,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: parts.authorization,
    },
    body: JSON.stringify(body),
  });
  const record: unknown = JSON.parse(await answer.body.text());
  if (answer.statusCode !== 200) throw new Error(`the PUT was answered with ${answer.statusCode}`);
  done(record);
  return body;
};

/** Returns the port; 0 once its records are idle again. */
answerOrders(async (order: BareOrder): Promise<number> => {
  if (order.kind === 'open') return await open(order);
  await parts?.records.giveBack(parts.api);
  return 0;
});

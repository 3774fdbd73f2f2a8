import { expect } from 'chai';
import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { aCompatibleApi } from './a-compatible-api.ts';

const WAIT_MS = 10_000;

/** The compatible API over claims in earnest, by a clock that is moved, of a pool without instances. */
const anEmptyPool = async () => {
  const world = await aSupervisor({ pool: { replicas: 0 } });
  const operations = Object.assign(anEngine(), {
    claimSandbox: (_caller: unknown, ...[request, signal]: Claim) =>
      world.claim(alice, request, signal),
  });
  const api = await aCompatibleApi({ operations, terms: { waitMs: WAIT_MS } });
  const create = (): ClientRequest => {
    const headers = { 'X-API-KEY': api.keys.tenant, 'Content-Type': 'application/json' };
    const asked = request(new URL('/v2/sandboxes', api.url), { method: 'POST', headers });
    asked.end(JSON.stringify({ templateID: 'base' }));
    return asked;
  };
  const untilWaiting = (count: number) =>
    eventually(
      async () => (await world.coordination.waiting(world.pool)) === count,
      `${count} wait`,
    );
  return { ...world, api, create, untilWaiting };
};

type Claim =
  Parameters<Awaited<ReturnType<typeof aSupervisor>>['claim']> extends [unknown, ...infer Rest]
    ? Rest
    : never;

describe('a creation by the compatible API without an idle instance', () => {
  it('waits for the configured time, and then gets 429 with whole seconds', async () => {
    const { api, clock, create, untilWaiting } = await anEmptyPool();
    try {
      let answer: IncomingMessage | undefined;
      create().once('response', (given: IncomingMessage) => (answer = given));
      await untilWaiting(1);
      clock.advance(WAIT_MS - 1);
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
      await untilWaiting(1);
      expect(answer).to.equal(undefined);
      clock.advance(1);
      await eventually(() => {
        clock.advance(0); // what is armed only now, for this moment
        return answer !== undefined;
      }, 'it is answered');

      expect(answer?.statusCode).to.equal(429);
      expect(answer?.headers['retry-after']).to.match(/^[1-9]\d*$/);
      answer?.resume();
      await untilWaiting(0);
    } finally {
      await api.stop();
    }
  });

  it('gets an instance that becomes idle in the meantime', async () => {
    const { api, create, untilWaiting, supervisor, pool } = await anEmptyPool();
    try {
      const answered = once(create(), 'response') as Promise<[IncomingMessage]>;
      await untilWaiting(1);
      await supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas: 1 }));
      const [answer] = await answered;

      expect(answer.resume().statusCode).to.equal(201);
    } finally {
      await api.stop();
    }
  });

  it('is cancelled when its client leaves, and takes nothing', async () => {
    const { api, create, untilWaiting, supervisor, pool } = await anEmptyPool();
    try {
      const asked = create().on('error', () => {});
      await untilWaiting(1);
      asked.destroy();
      await untilWaiting(0);
      await supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas: 1 }));
      const counts = () => supervisor.pools.get(pool.uid)?.counts;
      await eventually(() => counts()?.idle === 1, 'one is idle, and stays');

      expect(counts()?.running).to.equal(0);
    } finally {
      await api.stop();
    }
  });
});

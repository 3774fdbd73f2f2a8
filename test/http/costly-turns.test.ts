import { expect } from 'chai';
import { parse } from 'yaml';
import { CostlyTurns } from '../../src/http/limits/costly-turns.ts';
import { MOST_PREVIEWS_WAITING, PoolPreviews } from '../../src/http/resources/pools/previews.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { within } from '../support/harness/a-daemon.ts';
import { FakeOperations } from '../support/fakes/fake-operations.ts';
import { MemoryMetrics } from '../support/fakes/memory-metrics.ts';
import { aServer } from './a-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const COSTLY_MS = 25;

/** Requests whose work takes as long as they say, by a clock that goes on only so. */
const someTurns = (mostWaitingOfTenant = 64) => {
  let [time, processorMs] = [10_000, 0];
  const metrics = new MemoryMetrics();
  const turns = new CostlyTurns({
    metrics,
    now: () => time,
    processorMs: () => processorMs,
    mostWaitingOfTenant,
    holdMs: 1,
  });
  const order: string[] = [];
  const ask = async (tenant: string, ms = COSTLY_MS, workedMs = ms): Promise<string> => {
    try {
      await turns.request(tenant, 'createPool').begin();
    } catch (error) {
      return error instanceof Error && 'code' in error ? String(error.code) : String(error);
    }
    order.push(tenant);
    time += ms;
    processorMs += workedMs;
    return 'done';
  };
  const learn = async (tenant: string): Promise<void> => {
    for (let at = 0; at < 4; at += 1) {
      time += 5_000; // nobody else is about: no rest
      await ask(tenant);
      await new Promise(setImmediate);
      await new Promise(setImmediate);
    }
    order.length = 0;
  };
  return { turns, metrics, order, ask, learn };
};

describe('costly requests', () => {
  it('of one tenant are carried out before the queue of another', async () => {
    const { order, ask, learn } = someTurns();
    await learn('flood');
    await learn('other');

    const all = [...Array.from({ length: 10 }, () => ask('flood')), ask('other')];
    await Promise.all(all);

    expect(order.indexOf('other')).to.be.lessThan(3);
    expect(order).to.have.length(11);
  });

  it('are refused once too many of the same tenant wait, and not those of others', async () => {
    const { metrics, ask, learn } = someTurns(3);
    await learn('flood');
    await learn('other');

    const flood = Array.from({ length: 6 }, () => ask('flood'));
    const other = ask('other');

    expect((await Promise.all(flood)).sort()).to.deep.equal([
      'RATE_LIMITED',
      'RATE_LIMITED',
      'done',
      'done',
      'done',
      'done',
    ]);
    expect(await other).to.equal('done');
    expect(metrics.shown('sandpool_costly_refused_total', {})).to.equal(2);
    expect(metrics.shown('sandpool_costly_waiting', {})).to.equal(0);
  });

  it('are those that take long again and again, not one that the machine held up', async () => {
    const { turns, ask } = someTurns();

    expect(await ask('quiet', 5_000)).to.equal('done');
    await new Promise(setImmediate);

    expect(turns.request('quiet', 'createPool').begin()).to.equal(undefined);
  });

  it('are not those that waited for the processor, which others had', async () => {
    const { turns, ask } = someTurns();

    for (let at = 0; at < 20; at += 1) {
      expect(await ask('quiet', 60, 1)).to.equal('done');
      await new Promise(setImmediate);
      await new Promise(setImmediate);
    }

    expect(turns.request('quiet', 'createPool').begin()).to.equal(undefined);
  });

  it('are none of many cheap ones that are carried out together', async () => {
    const { turns, ask } = someTurns();
    for (let round = 0; round < 4; round += 1) {
      await Promise.all(Array.from({ length: 200 }, () => ask('quiet', 1)));
      await new Promise(setImmediate);
    }

    expect(turns.request('quiet', 'createPool').begin()).to.equal(undefined);
  });

  it('are cheap again once they take little', async () => {
    const { turns, ask, learn } = someTurns();
    await learn('quiet');
    expect(turns.request('quiet', 'createPool').begin()).to.be.instanceOf(Promise);
    for (let at = 0; at < 10; at += 1) {
      await ask('quiet', 0);
      await new Promise(setImmediate);
    }

    expect(turns.request('quiet', 'createPool').begin()).to.equal(undefined);
  });

  it('are known of the 10,000 tenants whose requests were costly last', async () => {
    const { turns, ask } = someTurns();
    const isKnown = (): boolean => turns.request('first', 'createPool').isWatched;
    await ask('first');
    await new Promise(setImmediate);
    expect(isKnown()).to.equal(true);
    for (let n = 0; n < 10_000; n += 1) {
      await ask(`tenant-${n}`);
      await new Promise(setImmediate);
    }

    expect(isKnown()).to.equal(false);
  });

  it('let a request of somebody else pass that came after them', async () => {
    let time = 0;
    const operations = new FakeOperations();
    const order: string[] = [];
    const list = operations.listPools;
    Object.assign(operations, {
      listPools: (...call: Parameters<typeof list>) => {
        order.push(call[0].user);
        if (call[0].user === 'ada') time += COSTLY_MS;
        return list(...call);
      },
    });
    const server = await aServer({
      operations,
      costly: new CostlyTurns({ metrics: silentMetrics, now: () => time }),
    });
    for (let at = 0; at < 4; at += 1) await server.tenant.get('/sandboxpools');
    await server.stranger.get('/sandboxpools');
    order.length = 0;

    const flood = Array.from({ length: 16 }, () => server.tenant.get('/sandboxpools'));
    const answer = await server.stranger.get('/sandboxpools');

    expect(answer.status).to.equal(200);
    expect((await Promise.all(flood)).map(({ status }) => status)).to.deep.equal(
      Array.from({ length: 16 }, () => 200),
    );
    expect(order.indexOf('eve')).to.be.lessThan(16);
    await server.stop();
  });
});

describe('a flood of previews', () => {
  /** A server whose previews are large, and wait until they are let go. */
  const aPreviewingServer = async () => {
    const operations = new FakeOperations();
    const args = Array.from({ length: 2_000 }, (_, at) => `${at}: ${'x'.repeat(50)}`);
    const view = {
      record: aPool({ name: 'p' }),
      spec: { containers: [{ name: 'main', image: 'busybox', args }] },
      version: 'v1',
    };
    const began: string[] = [];
    let letGo: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    Object.assign(operations, {
      previewPoolSync: async ({ user }: { readonly user: string }) => {
        began.push(user);
        await held;
        return view;
      },
    });
    return { server: await aServer({ operations }), began, args, letGo };
  };
  const PREVIEW = '/sandboxpools/p/sync-template/preview';

  it("leaves another tenant's requests and previews their turn, and is refused past its queue", async () => {
    const { server, began, args, letGo } = await aPreviewingServer();
    const asked = MOST_PREVIEWS_WAITING + 4;
    let refused = 0;

    const flood = Array.from({ length: asked }, async () => {
      const answer = await server.tenant.post(PREVIEW);
      if (answer.status === 429) refused += 1;
      return answer;
    });
    await within('too many wait', () => refused === 3 || undefined);
    expect(began).to.deep.equal(['ada']);
    expect((await server.stranger.get('/sandboxpools')).status).to.equal(200);
    const other = server.stranger.post(PREVIEW);
    await within('the other preview has begun', () => began.includes('eve') || undefined);
    letGo();

    expect(parse(JSON.parse((await other).text).specYaml))
      .to.have.nested.property('spec.containers[0].args')
      .that.deep.equals(args);
    const answers = await Promise.all(flood);
    expect(answers.filter(({ status }) => status === 200)).to.have.length(asked - 3);
    for (const { headers, json } of answers.filter(({ status }) => status !== 200))
      expect([headers['retry-after'], json.errorCode]).to.deep.equal(['1', 'RATE_LIMITED']);
    await server.stop();
  });

  it('of many tenants is refused past 128 that wait', async () => {
    const previews = new PoolPreviews({ metrics: silentMetrics, holdMs: 1 });
    let letGo: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const view = {
      record: { ...aPool({ name: 'p' }), revision: '1' },
      spec: { containers: [] },
      version: 'v1',
    };
    let begun = 0;
    const ask = async (user: string): Promise<string> => {
      try {
        await previews.show({ namespace: 'team-blue', team: 'blue', user }, async () => {
          begun += 1;
          await held;
          return view;
        });
        return 'shown';
      } catch (error) {
        return error instanceof Error && 'code' in error ? String(error.code) : String(error);
      }
    };

    const asked = ['one', 'two'].map(ask);
    for (let at = 0; at < 8; at += 1)
      for (let n = 0; n < 17; n += 1) asked.push(ask(`waiting-${n}`));
    const refused = asked.slice(2 + 128);
    expect(await Promise.all(refused)).to.deep.equal(refused.map(() => 'RATE_LIMITED'));
    expect(begun).to.equal(2);
    letGo();

    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => answer === 'shown')).to.have.length(2 + 128);
  });

  it('leave the processors to others for three times as long as they took', async () => {
    let time = 0;
    const rests: { readonly ms: number; readonly end: () => void }[] = [];
    const previews = new PoolPreviews({
      metrics: silentMetrics,
      now: () => time,
      rest: (ms) => new Promise((end) => void rests.push({ ms, end })),
    });
    const begun: string[] = [];
    const ask = async (user: string, ms: number): Promise<void> => {
      await previews.show({ namespace: 'team-blue', team: 'blue', user }, async () => {
        begun.push(user);
        time += ms;
        return await Promise.resolve({
          record: { ...aPool({ name: 'p' }), revision: '1' },
          spec: { containers: [] },
          version: 'v1',
        });
      });
    };

    await ask('one', 40);
    const second = ask('one', 500);
    await ask('two', 0);
    expect(begun).to.deep.equal(['one', 'two']);

    rests[0]?.end();
    await second;
    expect(begun).to.deep.equal(['one', 'two', 'one']);
    expect(rests.map(({ ms }) => ms)).to.deep.equal([120, 0, 300]);
  });
});

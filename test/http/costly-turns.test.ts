import { expect } from 'chai';
import { parse } from 'yaml';
import { Turns } from '../../src/http/limits/turns.ts';
import { MOST_PREVIEWS_WAITING, PoolPreviews } from '../../src/http/resources/pools/previews.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { within } from '../support/harness/a-daemon.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { aServer } from './a-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const COSTLY_MS = 25;

describe('costly requests', () => {
  it('let a later request of another tenant overtake', async () => {
    let time = 0;
    const now = (): number => performance.now() + time;
    const operations = anEngine();
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
      turns: new Turns({ metrics: silentMetrics, now, processorMs: now }),
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
    const operations = anEngine();
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

  it("does not block another tenant's requests and previews, and is refused beyond its queue", async () => {
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

  it('from many tenants is refused beyond 128 waiting', async () => {
    const previews = new PoolPreviews({ metrics: silentMetrics });
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

  it('rests for three times its processing time', async () => {
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

import { expect } from 'chai';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { inTurn, LoopTurns, MOST_OF_TENANT } from '../../src/http/limits/loop-turns.ts';
import { rejection } from '../support/harness/rejection.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('turns of the event loop', () => {
  let turns: LoopTurns;
  let now: number;
  let begun: string[];
  beforeEach(() => {
    now = 10_000;
    begun = [];
    turns = new LoopTurns({ metrics: silentMetrics, now: () => now, mostWaitingOfTenant: 50 });
  });

  /** A request that keeps the loop busy for so many milliseconds once it has begun. */
  const ask = (tenant: string, ms = 1): void => {
    const begin = (): void => {
      begun.push(tenant);
      now += ms;
    };
    const turn = turns.take(tenant);
    if (turn) turn.then(begin, () => begun.push(`${tenant} refused`));
    else begin();
  };

  it('are all of a tenant that is alone', () => {
    for (let n = 0; n < 100; n += 1) ask('noisy');
    expect(begun).to.have.length(100);
  });

  it('begin two requests each of a tenant beside whom another one is about, and all of them in the end', async () => {
    ask('quiet');
    for (let n = 0; n < 20; n += 1) ask('noisy');
    expect(begun).to.deep.equal(['quiet', 'noisy', 'noisy']);
    await nextTurn();
    expect(begun).to.have.length(1 + 2 * MOST_OF_TENANT);
    for (let n = 0; n < 20; n += 1) await nextTurn();
    expect(begun).to.have.length(21);
  });

  it('begin more while the requests of the turn have taken little time, those that waited too', async () => {
    ask('quiet');
    ask('noisy', 2);
    for (let n = 0; n < 10; n += 1) ask('quiet', 0.1);
    expect(begun).to.deep.equal(['quiet', 'noisy', 'quiet', 'quiet']);
    await nextTurn();
    expect(begun).to.have.length(12);
    for (let n = 0; n < 10; n += 1) ask('quiet', 0.1);
    expect(begun).to.have.length(22);
  });

  it('begin the request of whoever asks seldom at once, however many of another one wait', async () => {
    ask('quiet');
    for (let n = 0; n < 20; n += 1) ask('noisy');
    await nextTurn();
    ask('quiet');
    expect(begun.at(-1)).to.equal('quiet');
  });

  it('keep the order of one tenant', async () => {
    const order: number[] = [];
    ask('quiet');
    await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        const turn = turns.take('noisy');
        if (turn) await turn;
        order.push(n);
      }),
    );
    expect(order).to.deep.equal(Array.from({ length: 12 }, (_, n) => n));
  });

  it('serve tenants that wait one after the other, sixteen requests a turn', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `tenant-${n}`);
    ask('quiet');
    for (let n = 0; n < 4; n += 1) for (const name of names) ask(name);
    begun = [];
    await nextTurn();
    expect([...new Set(begun)]).to.deep.equal(names.slice(0, 8));
    await nextTurn();
    expect([...new Set(begun)]).to.deep.equal(names.slice(0, 16));
  });

  it('are over for nobody once the others are gone', async () => {
    ask('quiet');
    ask('noisy');
    now += 1_001;
    await nextTurn();
    begun = [];
    for (let n = 0; n < 20; n += 1) ask('noisy');
    expect(begun).to.have.length(20);
  });

  it('refuse the tenant of whose requests too many wait, and nobody else', async () => {
    ask('quiet');
    for (let n = 0; n < 52; n += 1) ask('noisy');
    expect(await rejection(turns.take('noisy') ?? Promise.resolve())).to.have.property(
      'code',
      'RATE_LIMITED',
    );
    ask('quiet');
    expect(begun.at(-1)).to.equal('quiet');
  });

  it('give no second one to a request that had its turn before its caller was known', async () => {
    ask('quiet');
    for (let n = 0; n < 5; n += 1) ask('noisy');
    const request = {};
    const early = turns.takeEarly(request, 'noisy');
    expect(early).to.be.an.instanceOf(Promise);
    expect(turns.take('noisy', request)).to.equal(undefined);
    expect(turns.take('noisy', {})).to.be.an.instanceOf(Promise);
    for (let n = 0; n < 5; n += 1) await nextTurn();
    await early;
  });
});

describe('requests that came together', () => {
  const aResponse = (state: 'open' | 'closed' | 'ended' = 'open') => {
    const answered: { status?: number; body: string } = { body: '' };
    const response = {
      closed: state === 'closed',
      writableEnded: state === 'ended',
      shouldKeepAlive: true,
      writeHead: (status: number) => {
        answered.status = status;
        return response;
      },
      end: (body: unknown) => {
        answered.body = String(body);
      },
      once: () => response,
      on: () => response,
    };
    return { answered, response: response as unknown as ServerResponse };
  };
  const aRequest = () => ({ headers: {}, method: 'GET' }) as unknown as IncomingMessage;
  const handled: unknown[] = [];
  let now = 10_000;
  const begin = (overload: { readonly isBusy: boolean }) =>
    inTurn({
      overload,
      loopTurns: new LoopTurns({ metrics: silentMetrics, now: () => now, mostWaitingOfTenant: 2 }),
      tenantOf: ({ method }) => (method === 'PUT' ? 'quiet' : 'noisy'),
      handle: async (request) => {
        handled.push(request.method);
      },
    });

  it('begin in turn where there are many, at once where there are few', async () => {
    handled.length = 0;
    const overload = { isBusy: false };
    const arrive = begin(overload);
    for (let n = 0; n < 3; n += 1) void arrive(aRequest(), aResponse().response);
    expect(handled).to.have.length(3);
    await nextTurn();
  });

  it('are refused where too many of one tenant wait, and let go where they were answered or their client is gone', async () => {
    handled.length = 0;
    const arrive = begin({ isBusy: true });
    void arrive({ ...aRequest(), method: 'PUT' } as IncomingMessage, aResponse().response);
    for (let n = 0; n < 2; n += 1) {
      void arrive(aRequest(), aResponse().response);
      now += 5; // the turn is long by now
    }
    void arrive(aRequest(), aResponse('closed').response);
    void arrive(aRequest(), aResponse('ended').response);
    const refused = aResponse();
    await arrive(aRequest(), refused.response);
    expect(refused.answered.status).to.equal(429);
    for (let n = 0; n < 5; n += 1) await nextTurn();
    expect(handled).to.deep.equal(['PUT', 'GET', 'GET']);
  });
});

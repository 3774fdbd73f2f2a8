import { expect } from 'chai';
import fc from 'fast-check';
import { Places } from '../../src/http/limits/shares.ts';
import { MOST_COSTLY_WAITING, Turns } from '../../src/http/limits/turns.ts';
import { MemoryMetrics } from '../support/fakes/memory-metrics.ts';
import { rejection } from '../support/harness/rejection.ts';

interface Work {
  readonly ms?: number;
  readonly workedMs?: number;
  readonly isLong?: boolean;
}

const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('turns of the event loop', () => {
  let metrics: MemoryMetrics;
  let turns: Turns;
  let now: number;
  let processorMs: number;
  let begun: string[];
  const anew = (mostWaiting?: number): void => {
    [now, processorMs, begun] = [10_000, 0, []];
    metrics = new MemoryMetrics();
    turns = new Turns({ metrics, now: () => now, processorMs: () => processorMs, mostWaiting });
  };
  beforeEach(() => anew());

  /** A request that keeps the loop busy for so many milliseconds once it has begun. */
  const ask = (tenant: string, { ms = 3, workedMs = ms, isLong = false }: Work = {}): void => {
    const of = begun;
    const begin = (): void => {
      if (of !== begun) return; // one of the test before
      begun.push(tenant);
      now += ms;
      processorMs += workedMs;
    };
    const turn = turns.take(tenant, isLong);
    if (turn) turn.then(begin, () => begun.push(`${tenant} refused`));
    else begin();
  };
  const askOften = (times: number, ...of: Parameters<typeof ask>): void => {
    for (let n = 0; n < times; n += 1) ask(...of);
  };
  const count = (tenant: string): number => begun.filter((each) => each === tenant).length;

  it('start the requests of a single tenant, for 20 ms each', async () => {
    askOften(20, 'noisy');
    expect(begun).to.have.length(7);
    await nextTurn();
    expect(begun).to.have.length(14);
    for (let n = 0; n < 3; n += 1) await nextTurn();
    expect(begun).to.have.length(20);
  });

  it('start one request of a tenant next to another active tenant, and all in the end', async () => {
    ask('quiet');
    askOften(20, 'noisy');
    expect(begun).to.deep.equal(['quiet', 'noisy']);
    await nextTurn();
    expect(begun).to.deep.equal(['quiet', 'noisy', 'noisy']);
    for (let n = 0; n < 20; n += 1) await nextTurn();
    expect(count('noisy')).to.equal(20);
  });

  it("start more while a tenant's requests are fast, including waiting ones", async () => {
    ask('quiet');
    ask('noisy');
    askOften(10, 'quiet', { ms: 0.1 });
    expect(begun).to.deep.equal(['quiet', 'noisy']);
    await nextTurn();
    expect(begun).to.have.length(12);
    askOften(5, 'quiet', { ms: 0.1 });
    expect(begun).to.have.length(17);
  });

  it("start a rare caller's request at once, however many others wait", async () => {
    ask('quiet');
    askOften(20, 'noisy');
    await nextTurn();
    ask('quiet');
    expect(begun.at(-1)).to.equal('quiet');
  });

  it("keep each tenant's order, and serve tenants in rotation", async () => {
    ask('quiet');
    for (let n = 0; n < 4; n += 1) for (let t = 0; t < 20; t += 1) ask(`tenant-${t}`);
    for (let n = 0; n < 16; n += 1) await nextTurn();
    const round = Array.from({ length: 20 }, (_, t) => `tenant-${t}`);
    expect(begun.slice(1)).to.deep.equal([...round, ...round, ...round, ...round]);
  });

  it('rest a tenant with slow requests for as long as they took, while others are active', async () => {
    ask('quiet', { ms: 0 });
    ask('noisy', { ms: 60 });
    await nextTurn();
    ask('noisy');
    ask('quiet', { ms: 0 });
    await nextTurn();
    expect(begun).to.deep.equal(['quiet', 'noisy', 'quiet']);
    expect(metrics.shown('sandpool_costly_waiting', {})).to.equal(1);
    expect(metrics.shown('sandpool_costly_seconds_total', {})).to.equal(0.06);
    now += 40; // of the 60, 20 are free
    while (begun.length < 4) await nextTurn();
    expect(begun.at(-1)).to.equal('noisy');
  });

  it('rest no single tenant, and ignore time used by others', async () => {
    ask('noisy', { ms: 60 });
    await nextTurn();
    ask('noisy', { ms: 60 });
    expect(begun).to.have.length(2);
    await nextTurn();
    anew();
    ask('other', { ms: 0 });
    ask('quiet', { ms: 60, workedMs: 4 });
    await nextTurn();
    ask('quiet');
    expect(begun).to.deep.equal(['other', 'quiet', 'quiet']);
  });

  it('have capacity for a tenant, whatever three others send', async () => {
    const floods = fc.array(fc.constantFrom('noisy', '', 'third', 'quiet'), { maxLength: 600 });
    await fc.assert(
      fc.asyncProperty(floods, async (tenants) => {
        anew(128);
        const refused: boolean[] = [];
        for (const tenant of tenants) {
          const nth = tenant === 'quiet' ? refused.push(false) - 1 : undefined;
          turns.take(tenant)?.catch(() => {
            if (nth !== undefined) refused[nth] = true;
          });
        }
        await Promise.resolve();
        await Promise.resolve();
        expect(refused.slice(0, 1 + 8)).not.to.include(true);
      }),
      { numRuns: 50 },
    );
  });

  it('refuse a tenant beyond half of what others leave', async () => {
    anew(100);
    ask('quiet');
    askOften(52, 'noisy');
    expect(await rejection(turns.take('noisy') ?? Promise.resolve())).to.have.property(
      'code',
      'RATE_LIMITED',
    );
    expect(metrics.shown('sandpool_costly_refused_total', {})).to.equal(2);
    askOften(26, 'other');
    await nextTurn();
    expect([count('noisy refused'), count('other refused')]).to.deep.equal([1, 0]);
  });

  it('queue fewer long bodies, and fewer requests of a resting tenant', async () => {
    ask('quiet', { ms: 0 });
    askOften(MOST_COSTLY_WAITING.ofTenant + 2, 'noisy', { isLong: true });
    ask('noisy');
    ask('resting', { ms: 100 });
    await nextTurn();
    askOften(MOST_COSTLY_WAITING.ofTenant + 1, 'resting');
    for (let t = 0; t < 20; t += 1) askOften(32, `tenant-${t}`, { isLong: true });
    await nextTurn();
    expect([count('noisy refused'), count('resting refused')]).to.deep.equal([1, 1]);
    const refused = begun.filter((each) => /^tenant.*refused/.test(each)).length;
    expect(refused).to.be.within(20 * 32 - MOST_COSTLY_WAITING.inAll, 20 * 32);
  });
});

describe('running operations', () => {
  it('leave half of the slots to other tenants, whatever one of them requests', async () => {
    const places = new Places(64);
    let end: () => void = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const begun: Promise<void>[] = [];
    for (let n = 0; n < 1_000; n += 1)
      begun.push(places.within({ operation: `kind-${n}`, tenant: 'noisy' }, () => ended));
    const results = Promise.allSettled(begun);
    expect(await rejection(begun.at(-1) ?? Promise.resolve())).to.include({ code: 'UNAVAILABLE' });
    expect(places.areTaken).to.equal(false);
    expect(await places.within({ operation: 'list', tenant: 'quiet' }, () => 'listed')).to.equal(
      'listed',
    );
    end();
    expect((await results).filter(({ status }) => status === 'fulfilled')).to.have.length(32);
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { Deadlines, Outbox } from '../../src/actors/runtime/actor-runtime.ts';
import { Waiters } from '../../src/actors/runtime/actor-host.ts';
import { eventually } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { runs } from '../support/harness/runs.ts';

describe('deadlines', () => {
  it('hand out each key once, at or after its latest deadline, and no cancelled key', () => {
    const arming = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      in: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
      pass: fc.integer({ min: 0, max: 20 }),
    });
    fc.assert(
      fc.property(fc.array(arming, { maxLength: 60 }), (steps) => {
        const clock = new TestClock();
        const current = new Map<string, number>();
        const deadlines = new Deadlines(clock, (key, now) => {
          expect(current.get(key)).to.be.at.most(now);
          current.delete(key);
        });
        for (const { key, in: distance, pass } of steps) {
          const at = distance === undefined ? undefined : clock.now() + distance;
          deadlines.arm(key, at);
          if (at === undefined) current.delete(key);
          else current.set(key, at);
          clock.advance(pass);
          expect([...current.values()].filter((due) => due <= clock.now())).to.deep.equal([]);
        }
        clock.advance(100);
        expect(current.size).to.equal(0);
        expect(deadlines.size).to.equal(0);
        deadlines.stop();
      }),
      { numRuns: runs(1_000) },
    );
  });

  it('report the time that was set', () => {
    const clock = new TestClock();
    const told: number[] = [];
    const deadlines = new Deadlines(clock, (_key, _now, at) => {
      told.push(at);
    });
    const at = clock.now() + 7;

    deadlines.arm('a', at);
    clock.advance(20);

    expect(told).to.deep.equal([at]);
  });

  it('keep memory in proportion to the keys, however often deadlines move', () => {
    const clock = new TestClock();
    let due = 0;
    const deadlines = new Deadlines(clock, () => {
      due += 1;
    });
    for (let i = 0; i < 10_000; i++) deadlines.arm('a', clock.now() + 1_000 + i);
    expect(deadlines.size).to.equal(1);
    clock.advance(20_000);
    expect(due).to.equal(1);
    deadlines.stop();
  });
});

describe('a thousand deadlines at once', () => {
  it('are handed out in slices, without losing any', async () => {
    const clock = new TestClock();
    let due = 0;
    const busy = {
      now: () => clock.now() + due, // each takes a millisecond
      at: clock.at.bind(clock),
    };
    const deadlines = new Deadlines(busy, () => {
      due += 1;
    });
    for (let i = 0; i < 1_000; i++) deadlines.arm(`k${i}`, clock.now() + 10);
    clock.advance(10);
    expect(due).to.equal(6);
    await eventually(() => due === 1_000, 'all handed out');
    deadlines.stop();
  });
});

describe('the outbox', () => {
  it('drops effects of lost leases, and runs the others in order', () => {
    const outbox = new Outbox(quietLog);
    const done: string[] = [];
    let held = true;
    const lease = { epoch: 1, held: () => held };
    outbox.put({
      name: 'first',
      lease,
      act: () => {
        done.push('first');
        held = false;
      },
    });
    outbox.put({
      name: 'second',
      lease,
      act: () => {
        done.push('second');
      },
    });
    outbox.put({
      name: 'third',
      lease: undefined,
      act: () => {
        done.push('third');
      },
    });
    outbox.drain();
    expect(done).to.deep.equal(['first', 'third']);
  });

  it('reports the number of dropped effects and the age of the oldest running one', async () => {
    const outbox = new Outbox(quietLog);
    let end = (): void => undefined;
    outbox.put({ name: 'dropped', lease: { epoch: 1, held: () => false }, act: () => undefined });
    outbox.put({
      name: 'slow',
      lease: undefined,
      act: () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    });
    expect(outbox.numbers('supervisor')).to.include({ underWay: 0, oldestMs: 0, dropped: 0 });

    outbox.drain();
    await eventually(
      () => outbox.numbers('supervisor').oldestMs > 0,
      'the slow one has taken time',
    );
    expect(outbox.numbers('supervisor')).to.include({ underWay: 1, dropped: 1 });

    end();
    await outbox.settled();
    expect(outbox.numbers('supervisor')).to.include({ underWay: 0, oldestMs: 0 });
  });

  it('continues after a failed effect, and reports when nothing is running', async () => {
    const outbox = new Outbox(quietLog);
    const done: string[] = [];
    outbox.put({
      name: 'throws',
      lease: undefined,
      act: () => {
        throw new Error('no');
      },
    });
    outbox.put({
      name: 'rejects',
      lease: undefined,
      act: async () => {
        throw new Error('no');
      },
    });
    outbox.put({
      name: 'works',
      lease: undefined,
      act: async () => {
        done.push('works');
      },
    });
    outbox.drain();
    await outbox.settled();
    expect(done).to.deep.equal(['works']);
  });
});

describe('waiters', () => {
  it('resolve at a change that satisfies them, or at their deadline', async () => {
    const clock = new TestClock();
    const waiters = new Waiters(clock);
    let ready = false;
    let [first, second] = [false, false];
    void waiters
      .until('k', () => ready, clock.now() + 1_000)
      .then(() => {
        first = true;
      });
    void waiters
      .until('k', () => false, clock.now() + 1_000)
      .then(() => {
        second = true;
      });
    ready = true;
    waiters.changed('k');
    await eventually(() => first, 'the first');
    expect(second).to.equal(false);
    clock.advance(1_001);
    await eventually(() => second, 'the second');
  });
});

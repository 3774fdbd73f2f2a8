import { expect } from 'chai';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';

describe('the system clock', () => {
  const clock = systemClock();
  /** A clock's moments don't keep the process alive; the test does. */
  let alive: NodeJS.Timeout;
  beforeEach(() => {
    alive = setInterval(() => undefined, 1_000);
  });
  afterEach(() => {
    clearInterval(alive);
  });
  const reached = (moment: number): Promise<number> =>
    new Promise((resolve) => {
      clock.at(moment, () => {
        resolve(clock.now());
      });
    });

  it('returns whole milliseconds of today, and never goes back', () => {
    const times = Array.from({ length: 10_000 }, () => clock.now());

    expect(times.every(Number.isInteger)).to.equal(true);
    expect(
      times.every((time, index) => index === 0 || time >= (times[index - 1] ?? Infinity)),
    ).to.equal(true);
    expect(Math.abs((times[0] ?? 0) - Date.now())).to.be.lessThan(60_000);
  });

  it('fires at or after the deadline, never before', async () => {
    for (const distance of [0, 1, 7, 20]) {
      const moment = clock.now() + distance;
      expect(await reached(moment)).to.be.at.least(moment);
    }
  });

  it('fires at once for a past deadline, but only after the caller continues', async () => {
    let called = false;
    const call = new Promise<void>((resolve) => {
      clock.at(clock.now() - 5_000, () => {
        called = true;
        resolve();
      });
    });
    expect(called).to.equal(false);
    await call;
  });

  it('does not fire a cancelled timer', async () => {
    const calls: string[] = [];
    const cancel = clock.at(clock.now() + 5, () => {
      calls.push('off');
    });
    cancel();
    cancel();
    await reached(clock.now() + 10);

    expect(calls).to.deep.equal([]);
  });

  it('waits for a deadline beyond the range of a timer', async () => {
    const calls: string[] = [];
    const warnings: Error[] = [];
    const hear = (warning: Error): void => {
      warnings.push(warning);
    };
    process.on('warning', hear);
    const cancels = [2 ** 31, 2 ** 32, 400 * 24 * 3_600_000].map((distance) =>
      clock.at(clock.now() + distance, () => {
        calls.push('early');
      }),
    );

    await reached(clock.now() + 30);
    process.off('warning', hear);
    for (const cancel of cancels) cancel();

    expect([calls, warnings]).to.deep.equal([[], []]);
  });
});

describe('the test clock', () => {
  it('fires timers in order, each at its own time', () => {
    const clock = new TestClock(1_000);
    const calls: string[] = [];
    const note = (name: string) => () => {
      calls.push(`${name}@${clock.now()}`);
    };
    clock.at(1_030, note('c'));
    clock.at(1_010, () => {
      note('a')();
      clock.at(1_020, note('b'));
    });
    clock.at(1_030, note('d'));
    clock.at(1_051, note('late'));
    const cancel = clock.at(1_015, note('off'));
    cancel();

    clock.advance(50);

    expect(calls).to.deep.equal(['a@1010', 'b@1020', 'c@1030', 'd@1030']);
    expect([clock.now(), clock.waiting]).to.deep.equal([1_050, 1]);
  });
});

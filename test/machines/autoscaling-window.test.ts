import { expect } from 'chai';
import fc from 'fast-check';
import {
  extremeOf,
  lowered,
  sampled,
  type SlidingWindow,
} from '../../src/machines/autoscaling/window.ts';
import { check } from '../properties/check.ts';

const LEAST = { extreme: 'least', spanMs: 600_000 } as const;

const over = (
  values: readonly number[],
  rule: Parameters<typeof sampled>[2] = LEAST,
): SlidingWindow =>
  values.reduce<SlidingWindow>(
    (window, value, index) => sampled(window, { value, at: index * 5_000 }, rule),
    [],
  );

describe('a sliding window', () => {
  it('has no value until it covers its whole span', () => {
    const window = over([3, 3, 3]);

    expect(extremeOf(window, 10_000, LEAST.spanMs)).to.equal(undefined);
    expect(extremeOf(window, LEAST.spanMs, LEAST.spanMs)).to.equal(3);
  });

  it('stays the same object while its value stays the same', () => {
    const window = over([3]);

    expect(sampled(window, { value: 3, at: 400_000 }, LEAST)).to.equal(window);
  });

  it('drops values older than its span', () => {
    const window = sampled(
      sampled([[0, 1]], { value: 7, at: 100_000 }, LEAST),
      { value: 7, at: 700_001 },
      LEAST,
    );

    expect(extremeOf(window, 700_001, LEAST.spanMs)).to.equal(7);
  });

  it('decreases together with all its values', () => {
    expect(
      lowered(
        [
          [0, 5],
          [100, 9],
        ],
        6,
      ),
    ).to.deep.equal([
      [0, 0],
      [100, 3],
    ]);
  });

  for (const extreme of ['least', 'most'] as const) {
    it(`never understates the ${extreme}, lags by at most a twentieth of its span, and stays small`, () => {
      check(
        fc.property(
          fc.array(fc.nat({ max: 8 }), { minLength: 1, maxLength: 300, size: 'max' }),
          fc.constantFrom(0, 30_000, 100_000, 600_000),
          (values, spanMs) => {
            const rule = { extreme, spanMs };
            const window = over(values, rule);
            const now = (values.length - 1) * 5_000;
            const of = (from: number): number => {
              const seen = values.filter((_, index) => index * 5_000 >= from);
              return extreme === 'least' ? Math.min(...seen) : Math.max(...seen);
            };
            expect(window.length, 'steps').to.be.at.most(23);
            const told = extremeOf(window, now, spanMs);
            if (now < spanMs) {
              expect(told).to.equal(undefined);
              return;
            }
            // It may still count what was a step before its span, and nothing older.
            const [exact, late] = [of(now - spanMs), of(now - spanMs * 1.05 - 5_000)];
            expect(told).to.be.within(Math.min(exact, late), Math.max(exact, late));
          },
        ),
      );
    });
  }
});

import { expect } from 'chai';
import {
  filesOf,
  kubernetesFiles,
  sliceOf,
  SLICES,
  testFiles,
  unitsOf,
  usualFiles,
} from '../../script/test-plan.ts';
import { beyondBudget } from '../../script/test-usage.ts';

const DAY_MS = 86_400_000;

describe('the test plan', () => {
  it('runs every test file by at least one command', () => {
    const planned = new Set([
      ...usualFiles(),
      ...kubernetesFiles(),
      ...SLICES.flatMap((s) => filesOf(s)),
    ]);

    expect(testFiles().filter((file) => !planned.has(file))).to.deep.equal([]);
  });

  it('names existing files only', () => {
    for (const { name, only = [], again = [] } of SLICES)
      for (const beginning of [...only, ...again])
        expect(
          testFiles().some((file) => file.startsWith(beginning)),
          `${name}: ${beginning}`,
        ).to.equal(true);
  });

  it('puts each file into one unit', () => {
    const files = usualFiles();

    expect(unitsOf(files).flatMap((unit) => unit.files)).to.have.length(files.length);
  });

  it('reaches every slice within any week, including over New Year', () => {
    for (let first = Date.UTC(2027, 11, 20); first < Date.UTC(2028, 0, 1); first += DAY_MS) {
      const week = Array.from({ length: 7 }, (_, n) => sliceOf(new Date(first + n * DAY_MS)).name);
      if (new Date(first + 6 * DAY_MS).getUTCFullYear() === 2027)
        expect(new Set(week).size).to.equal(SLICES.length);
    }
    expect(SLICES.length).to.equal(7);
  });

  it('excludes waiting and processor time of others', () => {
    const busy = { clock: 4 * 600, processor: 1_000, others: 3_600 };

    expect(beyondBudget({ ...busy, others: 0 }, 10)).to.match(/^40\.0 minutes/);
    expect(beyondBudget({ clock: 500, processor: 1_500, others: 0 }, 10)).to.match(
      /^12\.5 minutes/,
    );
    expect(beyondBudget({ clock: 590, processor: 1_000, others: 0 }, 10)).to.equal(undefined);
  });
});

import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NUMBERS = Array.from({ length: 40 }, (_, n) => n);

/** A contract with two sampled implementations, and tests outside of it. */
const CONTRACT = `
  import { needsAllTests, sampled } from '${join(ROOT, 'test/support/harness/sampled.ts')}';
  const suite = (name) => {
    describe(name, () => {
      for (const n of ${JSON.stringify(NUMBERS)}) describe('' + n, () => { it('holds', () => {}); });
      needsAllTests(it('has all', () => {}));
    });
    describe(name + ' is small', () => { it('holds', () => {}); });
  };
  describe('outside', () => {
    it('before', () => {});
    sampled(() => suite('one'));
    sampled(() => suite('other'));
    it('after', () => {});
  });`;

describe('a sampled contract suite', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-sampled-'));
    writeFileSync(join(folder, 'a.test.ts'), CONTRACT);
  });
  after(() => {
    rmSync(folder, { recursive: true });
  });

  /** Titles of the tests that mocha would run. */
  const defined = async (env: Readonly<Record<string, string>>): Promise<readonly string[]> => {
    const { TEST_LONG: _, ...around } = process.env;
    const mocha = join(ROOT, 'node_modules/mocha/bin/mocha.js');
    const args = [mocha, '--dry-run', '--reporter=json', join(folder, 'a.test.ts')];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      cwd: ROOT,
      env: { ...around, ...env },
    });
    const { tests } = JSON.parse(stdout) as { tests: readonly { fullTitle: string }[] };
    return tests.map(({ fullTitle }) => fullTitle);
  };
  const allOf = (name: string): readonly string[] => [
    ...NUMBERS.map((n) => `outside ${name} ${n} holds`),
    `outside ${name} has all`,
    `outside ${name} is small holds`,
  ];

  it('keeps all tests with TEST_LONG=1, and otherwise the same share each time, by implementation', async () => {
    const [long, first, second] = await Promise.all([
      defined({ TEST_LONG: '1' }),
      defined({}),
      defined({ TEST_LONG: '0' }),
    ]);

    const around = ['outside before', 'outside after'];
    expect(long).to.have.members([...around, ...allOf('one'), ...allOf('other')]);
    expect(first).to.include.members([
      ...around,
      'outside one is small holds',
      'outside other is small holds',
    ]);
    expect(first).to.not.include.members(['outside one has all']);
    expect(second).to.deep.equal(first);
    const shareOf = (name: string): readonly string[] =>
      NUMBERS.map(String).filter((n) => first.includes(`outside ${name} ${n} holds`));
    expect([shareOf('one').length, shareOf('other').length]).to.deep.equal([10, 10]);
    expect(shareOf('one')).to.not.deep.equal(shareOf('other'));
  });
});

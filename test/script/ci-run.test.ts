import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

const CI_RUN = fileURLToPath(new URL('../../.ci/run', import.meta.url));

const ARGUMENTS = { test: '', kubernetes: 'kubernetes', slice: 'long --today' };
type Part = keyof typeof ARGUMENTS;
type Programs = Partial<Record<Part, string>>;

const sum = (passed: number, failed = 0, skipped = 0): string =>
  `echo '${passed} passed, ${failed} failed, ${skipped} skipped'${failed > 0 ? '; exit 1' : ''}`;

describe('.ci/run', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-ci-'));
    for (const name of ['.ci', 'script']) mkdirSync(join(folder, name));
    cpSync(CI_RUN, join(folder, '.ci/run'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const outputOf = (
    parts: Programs,
  ): { readonly code: number | null; readonly lines: readonly string[] } => {
    const cases = Object.entries(ARGUMENTS).map(
      ([part, args]) => `'${args}') ${parts[part as Part] ?? sum(0)} ;;`,
    );
    const text = `#!/bin/sh\ncase "$*" in ${cases.join(' ')} esac\n`;
    writeFileSync(join(folder, 'script/test'), text, { mode: 0o755 });
    const { status, stdout } = spawnSync('bash', [join(folder, '.ci/run')], {
      encoding: 'utf8',
      timeout: NEVER_COMES_MS,
    });
    return { code: status, lines: stdout.trimEnd().split('\n') };
  };
  const run = (parts: Programs) => {
    const { code, lines } = outputOf(parts);
    return [code, lines.at(-1)];
  };

  it('sums all parts in its last line', () => {
    expect(run({ test: sum(5, 0, 1), kubernetes: sum(7, 0, 2), slice: sum(30) })).to.deep.equal([
      ...[0, '42 passed, 0 failed, 3 skipped'],
    ]);
  });

  it('fails if one part fails, and still runs all', () => {
    for (const part of Object.keys(ARGUMENTS) as Part[])
      expect(
        run({ test: sum(1), kubernetes: sum(1), slice: sum(1), [part]: sum(3, 2) }),
      ).to.deep.equal([1, '5 passed, 2 failed, 0 skipped']);
  });

  it('counts a part without a summary as failed, and one that fails after a good summary', () => {
    expect(run({ test: sum(5), kubernetes: 'kill -9 $$' })).to.deep.equal([
      ...[1, '5 passed, 1 failed, 0 skipped'],
    ]);
    expect(run({ test: `${sum(5)}; exit 3`, kubernetes: sum(7) })).to.deep.equal([
      ...[1, '12 passed, 1 failed, 0 skipped'],
    ]);
  });

  it('ends with slowest files, skips, failures and the name of the slice', () => {
    const { lines } = outputOf({
      test: `echo 'slowest files, in'; echo '  12.0  a.test.ts'; echo 'test: 1 min of processor time; others took 0'; echo 'FAILED: a: no'; ${sum(1, 1)}`,
      kubernetes: `echo 'skipped: b: no node'; ${sum(1, 0, 1)}`,
      slice: `echo 'long drills: 3 min'; exit 137`,
    });

    expect(lines.filter((line) => line !== '').slice(-8)).to.deep.equal([
      'slowest files, in',
      '  12.0  a.test.ts',
      'test: 1 min of processor time; others took 0',
      'FAILED: a: no',
      'skipped: b: no node',
      'FAILED: slice ended with 137, without a sum',
      'The slice of the long suites was: drills',
      '2 passed, 2 failed, 1 skipped',
    ]);
  });
});

import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SuiteResult } from '../../script/test-reporter.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SKIP_BECAUSE = join(ROOT, 'test/support/harness/skip-because.ts');

const ALL_OUTCOMES = `
  import { skipBecause } from '${SKIP_BECAUSE}';
  it('a', () => {}); it('b', () => {});
  it('c', () => { throw new Error('Property failed\\n{ seed: 7 }\\nlong'); });
  it('d', function () { skipBecause(this, 'there is no moon'); });
  it.skip('e', () => {});`;

/** Suites that fail as a whole. All run at the same time: most of that time they wait. */
const BAD_SUITES = {
  exits: "it('a', () => { process.exit(0); });",
  'is no program': 'syntax error',
  'has no test': "describe('a', () => {});",
  'goes on':
    "import { createServer } from 'node:http'; it('a', () => { createServer().listen(0); });",
  'leaves a process': `
      import { spawn } from 'node:child_process'; import { openSync, writeFileSync } from 'node:fs'; import { tmpdir } from 'node:os'; import { join } from 'node:path';
      it('a', () => {
        const out = openSync(join(tmpdir(), 'out'), 'w');
        const child = spawn('sleep', ['4711'], { detached: true, env: {}, stdio: ['ignore', out, 'ignore'] });
        child.unref();
        writeFileSync(process.env.PID_FILE, String(child.pid));
      });`,
} as const;

/** Runs each file of its arguments as a suite, and prints the results, by file, as its last line. */
const RUNS_SUITES = `
  import { dirname, join } from 'node:path';
  import { SuiteProcess } from '${join(ROOT, 'script/suite-process.ts')}';
  const results = await Promise.all(process.argv.slice(2).map(async (file) => {
    const order = { name: 'a suite', files: [file], env: {}, node: process.execPath, folder: join(dirname(file), 'tmp'), isLive: false };
    return [file, await new SuiteProcess(order).result(performance.now() + 600_000)];
  }));
  console.log(JSON.stringify(Object.fromEntries(results)));`;

describe('the test runner', function () {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-runner-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const pidFile = (): string => join(folder, 'pid');
  const aFile = (text: string, name = 'a.test.ts'): string => {
    const file = join(mkdtempSync(join(folder, 'run-')), name);
    writeFileSync(file, text);
    return file;
  };
  const run = async (
    ...args: readonly string[]
  ): Promise<{ readonly code: unknown; readonly output: string; readonly lastLine: string }> => {
    const child = spawn(process.execPath, ['--import', 'tsx', ...args], {
      cwd: ROOT,
      env: { ...process.env, PID_FILE: pidFile() },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
    const [code]: unknown[] = await once(child, 'close');
    return { code, output, lastLine: output.trimEnd().split('\n').at(-1) ?? '' };
  };

  it('counts passed, failed and skipped tests in its last line; a skip without a cause fails', async () => {
    const { code, output, lastLine } = await run('script/run-tests.ts', aFile(ALL_OUTCOMES));

    expect(lastLine).to.equal('2 passed, 2 failed, 1 skipped');
    expect(code).to.equal(10);
    expect(output).to.include('skipped: d: there is no moon');
    expect(output).to.include('FAILED: c: Property failed { seed: 7 }\n');
    expect(output).to.include('FAILED: e (skipped without a cause)\n');
  });

  describe('counts a suite as failed', () => {
    let results: ReadonlyMap<string, SuiteResult>;
    before(async () => {
      const files = Object.entries(BAD_SUITES).map(([name, text]) => [name, aFile(text)] as const);
      const driver = aFile(RUNS_SUITES, 'driver.mts');
      const { lastLine } = await run(driver, ...files.map(([, file]) => file));
      const found = JSON.parse(lastLine) as Readonly<Record<string, SuiteResult>>;
      results = new Map(files.map(([name, file]) => [name, found[file]!])); // it ran each file
    });

    for (const [name, passed, problem] of [
      ['exits', 0, /^a suite: crashed \(exit code 0\)$/],
      ['is no program', 0, /^a suite: crashed \(exit code [1-9]\d*\)$/],
      ['has no test', 0, /^a suite: ran no test$/],
      ['goes on', 1, /still alive 10 s after its last test: .*TCPServerWrap/],
      ['leaves a process', 1, /left processes behind: \d+ sleep 4711$/],
    ] as const)
      it(`that ${name}`, () => {
        const found = results.get(name);

        expect(found).to.deep.include({ passed, skipped: [] });
        expect(found?.failed).to.have.length(1);
        expect(found?.failed[0]).to.match(problem);
      });

    it('kills leftover processes, even outside of its session', () => {
      expect(isAlive(readFileSync(pidFile(), 'utf8'))).to.equal(false);
    });
  });
});

/** A zombie is dead; only pid 1 has not looked yet. */
const isAlive = (pid: string): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

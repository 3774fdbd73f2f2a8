import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SKIP_BECAUSE = join(ROOT, 'test/support/harness/skip-because.ts');

interface Run {
  readonly code: unknown;
  readonly output: string;
  readonly lastLine: string;
}

/** What is run, all of it at the same time: most of it waits. */
const TEXTS = {
  sums: `
      import { skipBecause } from '${SKIP_BECAUSE}';
      it('a', () => {}); it('b', () => {});
      it('c', () => { throw new Error('Property failed\\n{ seed: 7 }\\nlong'); });
      it('d', function () { skipBecause(this, 'there is no moon'); });`,
  passes: "it('a', () => {});",
  skips: "it('a', () => {}); it.skip('b', () => {});",
  'is killed': "it('a', () => { process.kill(process.pid, 'SIGKILL'); });",
  exits: "it('a', () => { process.exit(0); });",
  'is no program': 'syntax error',
  'is empty': '',
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

describe('the test runner', function () {
  let folder: string;
  let runs: ReadonlyMap<string, Promise<Run>>;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-runner-'));
    runs = new Map(Object.entries(TEXTS).map(([name, text]) => [name, run(name, text)]));
    for (const each of runs.values()) each.catch(() => {});
  });
  after(async () => {
    await Promise.allSettled(runs.values());
    rmSync(folder, { recursive: true, force: true });
  });

  const pidFile = (): string => join(folder, 'pid');
  const run = async (name: string, text: string): Promise<Run> => {
    const file = join(mkdtempSync(join(folder, 'run-')), 'a.test.ts');
    writeFileSync(file, text);
    const child = spawn(process.execPath, ['--import', 'tsx', 'script/run-tests.ts', file], {
      cwd: ROOT,
      env: { ...process.env, PID_FILE: pidFile() },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
    const [code]: unknown[] = await once(child, 'close');
    return { code, output, lastLine: output.trimEnd().split('\n').at(-1) ?? name };
  };
  const ended = async (name: keyof typeof TEXTS): Promise<Run> => {
    const found = await runs.get(name);
    if (!found) throw new Error(`${name} was not run`);
    return found;
  };

  it('sums what passed, failed and was skipped in its last line', async () => {
    const { code, output, lastLine } = await ended('sums');

    expect(lastLine).to.equal('2 passed, 1 failed, 1 skipped');
    expect(code).to.equal(10);
    expect(output).to.include('skipped: d: there is no moon');
    expect(output).to.include('FAILED: c: Property failed { seed: 7 }\n');
  });

  it('ends with 0 when all passed', async () => {
    const { code, lastLine } = await ended('passes');

    expect(lastLine).to.equal('1 passed, 0 failed, 0 skipped');
    expect(code).to.equal(0);
  });

  it('counts a skip without a cause as failed', async () => {
    expect((await ended('skips')).lastLine).to.equal('1 passed, 1 failed, 0 skipped');
  });

  for (const name of ['is killed', 'exits', 'is no program', 'is empty', 'has no test'] as const)
    it(`counts a suite as failed that ${name}`, async () => {
      const { code, lastLine } = await ended(name);

      expect(lastLine).to.equal('0 passed, 1 failed, 0 skipped');
      expect(code).to.equal(10);
    });

  it('counts a suite as failed that goes on after its last test, and ends it', async () => {
    const { output, lastLine } = await ended('goes on');

    expect(lastLine).to.equal('1 passed, 1 failed, 0 skipped');
    expect(output).to.match(/still alive 10 s after its last test: .*TCPServerWrap/);
  });

  it('ends the processes that a suite leaves behind, also outside of its session, and says which', async () => {
    const { output, lastLine } = await ended('leaves a process');

    expect(lastLine).to.equal('1 passed, 1 failed, 0 skipped');
    expect(output).to.match(/left processes behind: \d+ sleep 4711/);
    expect(isAlive(readFileSync(pidFile(), 'utf8'))).to.equal(false);
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

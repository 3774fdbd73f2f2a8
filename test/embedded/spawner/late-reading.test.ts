import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Execution } from '../../../src/embedded/spawner/execution.ts';
import { LauncherPool } from '../../../src/embedded/spawner/launcher-pool.ts';
import { NEVER_COMES_MS } from '../../support/harness/eventually.ts';

const PLACE = {
  init: { pid: 1, startTime: '1' },
  cgroups: [],
  env: {},
  workingDir: '/',
  user: undefined,
  bare: undefined,
};

/** Hands out this one. */
class OneLauncher extends LauncherPool {
  readonly child: ChildProcess;

  constructor(script: string) {
    super(() => '/bin/false');
    this.child = spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
  }

  override take(): ChildProcess {
    return this.child;
  }
}

/**
 * Stops this process for so long, as SIGSTOP or a paused VM does, once it knows of the command's
 * end and has read nothing: it learns of the ends of all that end at a time, and reads after that.
 */
const endUnread = (child: ChildProcess, standStillMs: number): void => {
  untilEnded(child);
  child.emit('exit', 0, null);
  standStill(standStillMs);
};

/** Returns once it has ended, of which this process has not heard yet. */
const untilEnded = ({ pid }: ChildProcess): void => {
  const until = performance.now() + NEVER_COMES_MS;
  while (!/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1')))
    if (performance.now() > until) throw new Error('the command does not end');
};

const standStill = (ms: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('output printed before the end of a command, in a stopped spawner', () => {
  it('is in the answer of exec', async () => {
    const printed: string[] = [];
    const launchers = new OneLauncher('echo early; echo too >&2');
    const over = new Promise((exited, failed) => {
      const order = { argv: ['x'], timeoutMs: 60_000, outputLimit: 1_000 };
      const output = (_kind: number, bytes: Buffer): boolean => printed.push(String(bytes)) > 0;
      new Execution(launchers, { place: PLACE, order }, { output, exited, failed });
    });
    endUnread(launchers.child, 200);

    expect(await over).to.include({ exitCode: 0, timedOut: false });
    expect(printed).to.have.members(['early\n', 'too\n']);
  });
});

describe('a command that ended in time, in a spawner stopped past the timeout', () => {
  it('does not count as timed out', async () => {
    const launchers = new OneLauncher('exit 3');
    const over = new Promise((exited, failed) => {
      const order = { argv: ['x'], timeoutMs: 500, outputLimit: 1_000 };
      new Execution(launchers, { place: PLACE, order }, { output: () => true, exited, failed });
    });
    untilEnded(launchers.child);
    standStill(700);

    expect(await over).to.include({ exitCode: 3, timedOut: false });
  });
});

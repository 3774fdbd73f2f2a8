import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Execution } from '../../../src/embedded/spawner/execution.ts';
import { LauncherPool } from '../../../src/embedded/spawner/launcher-pool.ts';
import { beginCommand, type Command } from '../../../src/embedded/spawner/processes/command.ts';

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

  /**
   * Has this process stand still for so long once it knows of the command's end, and before it has
   * read anything of it: it learns of the ends of all that end at a time, and reads after that.
   */
  endUnread(standStillMs: number): void {
    const until = performance.now() + 30_000;
    while (!/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${this.child.pid}/stat`, 'latin1')))
      if (performance.now() > until) throw new Error('the command does not end');
    this.child.emit('exit', 0, null);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, standStillMs);
  }
}

describe('what a command printed before its end, in a spawner that stood still', () => {
  it('is in the answer of one that is run', async () => {
    const printed: string[] = [];
    const launchers = new OneLauncher('echo early; echo too >&2');
    const over = new Promise((exited, failed) => {
      const order = { argv: ['x'], timeoutMs: 60_000, outputLimit: 1_000 };
      const output = (_kind: number, bytes: Buffer): boolean => printed.push(String(bytes)) > 0;
      new Execution(launchers, PLACE, order, { output, exited, failed });
    });
    launchers.endUnread(200);

    expect(await over).to.include({ exitCode: 0, timedOut: false });
    expect(printed).to.have.members(['early\n', 'too\n']);
  });

  it('is shown of a process', async () => {
    const { printed } = await ofAProcess('echo early', { standStillMs: 200 });

    expect(printed).to.equal('early\n');
  });

  it('is shown of a process whose output is taken in pieces', async () => {
    const { printed, pieces } = await ofAProcess('head -c 150000 /dev/zero', {
      standStillMs: 1_200,
    });

    expect(printed).to.have.length(150_000);
    expect(pieces).to.be.at.least(3);
  });
});

const ofAProcess = async (
  script: string,
  { standStillMs }: { readonly standStillMs: number },
): Promise<{ readonly printed: string; readonly pieces: number }> => {
  let printed = '';
  let pieces = 0;
  const launchers = new OneLauncher(script);
  await new Promise((exited) => {
    const output = (_name: string, bytes: Buffer): void => {
      printed += String(bytes);
      pieces += 1;
      command.pause();
      setImmediate(() => command.resume());
    };
    const command: Command = beginCommand({ launchers, launcherPath: () => '/bin/false' }, PLACE, {
      start: { processId: 'p', tenant: 't', argv: ['x'], stdin: false },
      events: { started() {}, output, exited },
    });
    launchers.endUnread(standStillMs);
  });
  return { printed, pieces };
};

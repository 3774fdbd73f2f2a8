import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { v7 } from 'uuid';
import type { ProcessFact } from '../../src/model/process.ts';
import { EmbeddedProcesses } from '../../src/embedded/driver/processes.ts';
import { LauncherPool } from '../../src/embedded/spawner/launcher-pool.ts';
import { Holders } from '../../src/embedded/spawner/processes/holders.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { OutputReading } from '../support/harness/output-reading.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  asRoot,
  commandLine,
  insideUid,
  openWorkshop,
  processesIn,
  startSandbox,
  startTimeOf,
  statusOf,
  type Sandbox,
  type Workshop,
} from './support.ts';

const LAST_PID = '/proc/sys/kernel/ns_last_pid';

/**
 * Leaves as the terminal's foreground a process group that is gone, as a hostile command may at any
 * time.
 */
const STALE_FOREGROUND = `
  use POSIX;
  $SIG{TTOU} = 'IGNORE';
  my $child = fork() // die;
  if (!$child) { sleep 600; exit }
  setpgid($child, $child) or die;
  tcsetpgrp(0, $child) or die;
  kill 9, $child;
  waitpid($child, 0);
  syswrite STDOUT, "stale\\n";
  sleep 600;
`;

/** A process of the host that leads a group of this very number. */
const strangerWith = (pid: number): ChildProcess | undefined => {
  for (let tries = 0; tries < 200; tries += 1) {
    writeFileSync(LAST_PID, String(pid - 1));
    const stranger = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
    if (stranger.pid === pid) return stranger;
    stranger.kill('SIGKILL');
  }
  return undefined;
};

const SANDBOX = 'box';

describe('processes on a terminal', function () {
  let workshop: Workshop;
  let sandbox: Sandbox;
  let launchers: LauncherPool;
  let processes: EmbeddedProcesses;

  before(async () => {
    workshop = openWorkshop();
    sandbox = await startSandbox(workshop, { command: ['sleep', '600'] });
    const folder = mkdtempSync(join(workshop.folder, 'holders-'));
    launchers = new LauncherPool(() => workshop.launcher, 'hold');
    const holders = new Holders({
      launchers,
      placeOf: () => ({
        init: { pid: sandbox.pid, startTime: sandbox.startTime },
        user: { uid: insideUid, gid: insideUid },
        cgroups: [],
        env: { PATH: '/usr/bin:/bin' },
        workingDir: '/work',
        bare: undefined,
      }),
      folder,
      lost: () => {},
      log: { warn: () => {} },
    });
    processes = new EmbeddedProcesses({
      spawner: {
        hold: async (id, order) => {
          await holders.start(id, order);
          return undefined;
        },
      },
      isRunning: () => true,
      folder,
      clock: systemClock(),
    });
  });
  after(async () => {
    launchers.stop();
    await sandbox.stop();
    workshop.close();
  });

  it("are the terminal's session leaders", async () => {
    const terminal = await open(['sh', '-c', 'cut -d" " -f1,5,6,8 /proc/$$/stat']);
    const { pid } = await terminal.reading.end();

    expect(terminal.reading.text('stdout')).to.equal(`${Array(4).fill(pid).join(' ')}\r\n`);
  });

  it('are hardened like the main process', async () => {
    const terminal = await open(['sleep', '71']);
    const standing = (pid: number): unknown =>
      ['Seccomp', 'NoNewPrivs', 'CapBnd', 'Uid'].map((name) => statusOf(pid).get(name));

    expect(standing(await runs('sleep 71'))).to.deep.equal(standing(sandbox.pid));
    await terminal.remove();
  });

  it('are interrupted in the foreground when ^C is typed, but not the shell', async () => {
    const terminal = await open(['bash', '--norc', '-i']);
    await terminal.type('PS1=p@; sleep 72\n');
    await runs('sleep 72');

    await terminal.type('\x03');
    await terminal.type('echo $((40+2)) $?\n');
    await terminal.shows('42 130');
    await terminal.type('exit 5\n');
    expect((await terminal.reading.end()).exitCode).to.equal(5);
  });

  it('are killed when the shell is removed, also in the foreground', async () => {
    const terminal = await open(['bash', '--norc', '-i']);
    await terminal.type('trap "" TERM HUP; exec -a shell bash -c "sleep 75; :"\n');
    const pids = [await runs('sleep 75'), await runs('shell -c sleep 75; :')];

    await terminal.remove();

    await eventually(() => pids.every((pid) => startTimeOf(pid) === undefined), 'all are dead');
  });

  it('never signal a foreign group that reuses the number of an ended foreground', async function () {
    if (!asRoot) skipBecause(this, 'needs root');
    if (!existsSync(LAST_PID)) skipBecause(this, 'this kernel does not let the next pid be chosen');
    const terminal = await open(['perl', '-e', STALE_FOREGROUND]);
    await terminal.shows('stale');
    const shell = await runs(`perl -e ${STALE_FOREGROUND}`);
    const stale = Number(
      /\) \S (?:\S+ ){4}(\S+)/.exec(readFileSync(`/proc/${shell}/stat`, 'latin1'))?.[1],
    );
    expect(startTimeOf(stale), 'its number is free').to.equal(undefined);
    const stranger =
      strangerWith(stale) ?? skipBecause(this, 'another process was quicker to take the number');

    const exited = once(stranger, 'exit');
    await terminal.kill();
    await terminal.remove();

    stranger.kill('SIGTERM');
    expect(await exited).to.deep.equal([null, 'SIGTERM']);
  });

  interface Terminal {
    readonly reading: OutputReading;
    type(words: string): Promise<void>;
    shows(words: string): Promise<void>;
    kill(): Promise<void>;
    remove(): Promise<void>;
  }

  async function open(argv: readonly string[]): Promise<Terminal> {
    const { processId }: ProcessFact = await processes.start(SANDBOX, {
      processId: v7(),
      tenant: 'blue',
      argv,
      stdin: true,
      tty: { cols: 80, rows: 24 },
    });
    const { signal } = new AbortController();
    const reading = new OutputReading((left) =>
      processes.output(SANDBOX, processId, { pace: false, signal: left }),
    );
    return {
      reading,
      type: (words) => processes.write(SANDBOX, processId, { bytes: Buffer.from(words), signal }),
      shows: (words) => eventually(() => reading.text('stdout').includes(words), words),
      kill: () => processes.signal(SANDBOX, processId, 'KILL'),
      remove: () => processes.remove(SANDBOX, processId),
    };
  }

  /** The pid of the process with this command line, once it runs. */
  async function runs(line: string): Promise<number> {
    let found: number | undefined;
    await eventually(() => {
      found = processesIn(sandbox).find((pid) => commandLine(pid) === line);
      return found !== undefined;
    }, `${line} runs`);
    return found ?? 0;
  }
});

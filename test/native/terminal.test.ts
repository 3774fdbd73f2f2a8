import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { spawn as spawnTerminal, type IPty } from 'node-pty';
import { skipBecause } from '../support/harness/skip-because.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  asRoot,
  commandLine,
  joinOrder,
  openWorkshop,
  orderFile,
  processesIn,
  startSandbox,
  startTimeOf,
  statusOf,
  within,
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

describe('launcher join on a terminal', function () {
  let workshop: Workshop;
  let sandbox: Sandbox;

  before(async () => {
    workshop = openWorkshop();
    sandbox = await startSandbox(workshop, { command: ['sleep', '600'] });
  });
  after(async () => {
    await sandbox.stop();
    workshop.close();
  });

  it("makes the terminal the command's controlling terminal, in a session of its own", async () => {
    const terminal = open([
      'sh',
      '-c',
      'echo typed by name >/dev/tty; echo also >/dev/stderr; cut -d" " -f1,5,6,8 /proc/$$/stat; read -r _',
    ]);

    // node-pty may lose what it has not read at the end
    await eventually(() => /\d\r\n$/.test(terminal.shown()), 'all is shown');
    terminal.pty.write('\n');
    await terminal.ended;

    const [, , ids = ''] = terminal.shown().trim().split('\r\n');
    const [pid, ...others] = ids.split(' ');
    expect(terminal.shown()).to.include('typed by name\r\nalso\r\n');
    expect(others).to.deep.equal([pid, pid, pid]);
  });

  it('hardens the command like any joined one', async () => {
    const terminal = open(['sleep', '71']);
    const command = await commandOf(terminal.pty, 'sleep');

    expect(
      Object.fromEntries(
        ['Seccomp', 'NoNewPrivs', 'CapBnd', 'Uid'].map((name) => [
          name,
          statusOf(command).get(name),
        ]),
      ),
    ).to.deep.equal(
      Object.fromEntries(
        ['Seccomp', 'NoNewPrivs', 'CapBnd', 'Uid'].map((name) => [
          name,
          statusOf(sandbox.pid).get(name),
        ]),
      ),
    );
    terminal.pty.kill('SIGTERM');
    await terminal.ended;
  });

  it('sets the size of the terminal, and each change of it', async () => {
    const terminal = open([
      'sh',
      '-c',
      'trap "stty size; exit 0" WINCH; stty size; while :; do sleep 60 & wait $!; done',
    ]);
    await terminal.shows('24 80');

    terminal.pty.resize(101, 43);

    await terminal.shows('43 101');
    await terminal.ended;
  });

  it('interrupts the foreground when ^C is typed, but not the shell', async () => {
    const terminal = open(['bash', '--norc', '-i']);
    terminal.pty.write('PS1=p@; sleep 72\n');
    await runsLine('sleep 72');

    terminal.pty.write('\x03');
    terminal.pty.write('echo $((40+2)) $?\n');

    await terminal.shows('42 130');
    terminal.pty.write('exit 5\n');
    expect((await terminal.ended).exitCode).to.equal(5);
  });

  it('passes signals on to the foreground, but not to the shell', async () => {
    const terminal = open(['bash', '--norc', '-i']);
    terminal.pty.write('PS1=p@; sleep 73; echo ended $?\n');
    await runsLine('sleep 73');

    process.kill(terminal.pty.pid, 34);
    await terminal.shows('ended 137');

    terminal.pty.write('sleep 74; echo ended $?\n');
    await runsLine('sleep 74');
    process.kill(terminal.pty.pid, 35);
    await terminal.shows('ended 143');
    terminal.pty.write('exit\n');
    await terminal.ended;
  });

  it('kills shell and foreground at SIGTERM', async () => {
    const terminal = open(['bash', '--norc', '-i']);
    terminal.pty.write('trap "" TERM HUP; sleep 75\n');
    const sleeping = await runsLine('sleep 75');
    const shell = await commandOf(terminal.pty, 'bash');

    process.kill(terminal.pty.pid, 'SIGTERM');

    expect((await terminal.ended).exitCode).to.equal(137);
    await eventually(
      () => startTimeOf(sleeping) === undefined && startTimeOf(shell) === undefined,
      'both are dead',
    );
  });

  it('hangs up the command when the terminal is closed', async () => {
    const terminal = open(['sleep', '76']);
    const command = await commandOf(terminal.pty, 'sleep');

    // node-pty's destroy() closes the master; its kill() would send SIGHUP to the parent half by
    // itself.
    Reflect.get(terminal.pty, 'destroy').call(terminal.pty);

    await eventually(() => startTimeOf(command) === undefined, 'the command is dead');
  });

  it('never signals a foreign group that reuses the number of an ended foreground', async function () {
    if (!asRoot) skipBecause(this, 'needs root');
    if (!existsSync(LAST_PID)) skipBecause(this, 'this kernel does not let the next pid be chosen');
    const terminal = open(['perl', '-e', STALE_FOREGROUND]);
    await terminal.shows('stale');
    const shell = await commandOf(terminal.pty, 'perl');
    const stale = Number(
      /\) \S (?:\S+ ){4}(\S+)/.exec(readFileSync(`/proc/${shell}/stat`, 'latin1'))?.[1],
    );
    expect(startTimeOf(stale), 'its number is free').to.equal(undefined);
    const stranger =
      strangerWith(stale) ?? skipBecause(this, 'another process was quicker to take the number');

    process.kill(terminal.pty.pid, 34);
    process.kill(terminal.pty.pid, 'SIGTERM');
    await terminal.ended;

    expect(startTimeOf(stale) === undefined ? 'dead' : statusOf(stale).get('State')).to.match(
      /^[RSD] /,
    ); // a dead one that nobody waited for is a zombie
    stranger.kill('SIGKILL');
  });

  interface Terminal {
    readonly pty: IPty;
    readonly ended: Promise<{ exitCode: number }>;
    shown(): string;
    shows(words: string): Promise<void>;
  }

  function open(command: readonly string[]): Terminal {
    const file = orderFile(
      workshop.folder,
      joinOrder(sandbox, { command, env: { PATH: '/usr/bin:/bin', TERM: 'dumb' } }),
    );
    const pty = spawnTerminal(workshop.launcher, ['join', file], { cols: 80, rows: 24, env: {} });
    let shown = '';
    pty.onData((chunk) => (shown += chunk));
    const ended = new Promise<{ exitCode: number }>((resolve) => pty.onExit(resolve));
    return {
      pty,
      get ended() {
        return within(ended, 'the terminal ends');
      },
      shown: () => shown,
      shows: (words) =>
        eventually(() => shown.includes(words), `${words} in ${JSON.stringify(shown)}`),
    };
  }

  async function commandOf(pty: IPty, name: string): Promise<number> {
    return runs(
      (pid) => statusOf(pid).get('PPid') === String(pty.pid) && statusOf(pid).get('Name') === name,
      name,
    );
  }

  /** By all of its words: what an earlier test left may be about to end. */
  async function runsLine(line: string): Promise<number> {
    return runs((pid) => commandLine(pid) === line, line);
  }

  async function runs(isIt: (pid: number) => boolean, name: string): Promise<number> {
    let found: number | undefined;
    await eventually(
      () =>
        (found = processesIn(sandbox).find(
          (pid) => startTimeOf(pid) !== undefined && isIt(pid),
        )) !== undefined,
      `${name} runs`,
    );
    return found ?? 0;
  }
});

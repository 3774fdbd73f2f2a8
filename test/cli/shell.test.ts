import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { eventually } from '../support/harness/eventually.ts';
import {
  aCliDaemon,
  cli,
  cliHere,
  startCli,
  startCliInTerminal,
  terminalWasRestored,
  type CliDaemon,
  type ServedTerminal,
} from './cli-support.ts';

describe('sandpool shell', function () {
  let daemon: CliDaemon;
  let env: Record<string, string>;
  beforeEach(async () => {
    daemon = await aCliDaemon();
    env = { SANDPOOL_DATA_DIR: daemon.dataDir };
  });
  afterEach(() => daemon.close());

  const served = (): ServedTerminal => daemon.terminals[0] as ServedTerminal;

  it("opens a shell of this terminal's size in a new sandbox, and gives the sandbox back", async () => {
    const shell = startCliInTerminal(['shell'], env, { cols: 97, rows: 31 });
    await shell.shows('INSIDE$');
    expect(served().request).to.include({ cols: 97, rows: 31 });
    expect(daemon.left()).to.deep.equal([served().request.sandboxId]);
    shell.pty.write('exit 5\r');
    expect(await shell.ended).to.equal(5);
    expect(daemon.left()).to.deep.equal([]);
    expect(terminalWasRestored(shell.output())).to.equal(true);
  });

  it('opens a shell in the named sandbox, which stays', async () => {
    const { stdout } = await cliHere(['sandboxes', 'create'], env);
    const sandboxId = stdout.trim();
    const shell = startCliInTerminal(['shell', sandboxId], env);
    await shell.shows('INSIDE$');
    shell.pty.write('exit\r');
    expect(await shell.ended).to.equal(0);
    expect(served().request.sandboxId).to.equal(sandboxId);
    expect(daemon.left()).to.deep.equal([sandboxId]);
  });

  it("passes on every key: interrupt, end of file, quit and stop are the shell's", async () => {
    const shell = startCliInTerminal(['shell'], env);
    await shell.shows('INSIDE$');
    shell.pty.write(
      'sh -c \'trap "echo caught; sleep 0.1; exit 6" INT; echo go$((1 + 1)); while :; do sleep 0.1; done\'\r',
    );
    await shell.shows('go2');
    shell.pty.write('\x03');
    await shell.shows(/caught\r\n[^]*INSIDE\$/); // else the terminal, not the shell, has the key
    shell.pty.write('\x04');
    expect(await shell.ended).to.equal(6);
    expect(daemon.left()).to.deep.equal([]);
  });

  it('resizes with this terminal', async () => {
    const shell = startCliInTerminal(['shell'], env, { cols: 80, rows: 24 });
    await shell.shows('INSIDE$');
    shell.pty.resize(101, 41);
    await eventually(
      () => served().pty.cols === 101 && served().pty.rows === 41,
      'the size is handed on',
    );
    shell.pty.write('stty size; exit\r');
    await shell.shows('41 101');
    await shell.ended;
  });

  it('keeps line feeds as the program inside wrote them', async () => {
    const shell = startCliInTerminal(['shell'], env);
    await shell.shows('INSIDE$');
    shell.pty.write('stty -opost; printf "one\\ntwo"; stty opost; exit\r');
    await shell.shows('one\ntwo');
    await shell.ended;
  });

  it('runs piped input, then ends', async () => {
    const end = await cli(['shell'], env, 'echo $((6 * 7)); exit 4\n');
    expect(end.code).to.equal(4);
    expect(end.stdout).to.include('42');
    const other = await cli(['shell'], env, 'echo $((6 * 9))\n');
    expect(other.code).to.equal(0);
    expect(other.stdout).to.include('54');
    expect(daemon.left()).to.deep.equal([]);
  });

  it('passes all output through a pipe to a slow reader', async () => {
    const { child, ended, text } = startCli(['shell'], env);
    child.stdout?.pause();
    child.stdin?.write(
      'stty -echo; head -c 16000000 /dev/zero | tr "\\0" z; echo done$((1 + 1))\n',
    );
    const taken = (): number => daemon.terminals[0]?.taken ?? 0;
    await eventually(() => taken() > 1_000_000, 'the output is on its way');
    // Another shell, whose output is read, gives all of it in the meantime.
    const other = startCli(['shell'], env);
    other.child.stdin?.write('head -c 16000000 /dev/zero | tr "\\0" z\n');
    await eventually(() => other.text.stdout.length > 16_000_000, 'the other has given all');
    other.child.stdin?.end('exit\n');
    expect((await other.ended).code).to.equal(0);
    expect(taken()).to.be.lessThan(12_000_000);
    child.stdout?.resume();
    await eventually(
      () => text.stdout.length > 16_000_000 && text.stdout.slice(16_000_000).includes('done2'),
      'all is there',
    );
    expect(/z{2,}/.exec(text.stdout)?.[0].length).to.equal(16_000_000);
    child.stdin?.end('exit\n');
    expect((await ended).code).to.equal(0);
  });

  it('ends with 125 and the reason, and restores the terminal, when the sandbox ends', async () => {
    const shell = startCliInTerminal(['shell'], env);
    await shell.shows('INSIDE$');
    shell.pty.write('printf "\\033[?1049h\\033[?25l\\033[?2004hfull screen"\r');
    await shell.shows(/\x1b\[\?2004hfull screen/);
    served().endSandbox();
    expect(await shell.ended).to.equal(125);
    expect(shell.output()).to.include('the sandbox ended');
    expect(terminalWasRestored(shell.output())).to.equal(true);
    const after = shell.output().slice(shell.output().lastIndexOf('full screen'));
    expect(after).to.include('\x1b[?1049l').and.include('\x1b[?25h').and.include('\x1b[?2004l');
  });

  it('ends with 125 and the reason, and restores the terminal, when the daemon stops', async () => {
    const shell = startCliInTerminal(['shell'], env);
    await shell.shows('INSIDE$');
    await daemon.stopTerminals();
    expect(await shell.ended).to.equal(125);
    expect(shell.output()).to.include('the daemon is stopping');
    expect(terminalWasRestored(shell.output())).to.equal(true);
  });

  it('hangs up, gives back and restores the terminal on SIGTERM', async () => {
    const shell = startCliInTerminal(['shell'], env);
    await shell.shows('INSIDE$');
    process.kill(childOf(shell.pty.pid), 'SIGTERM');
    expect(await shell.ended).to.equal(143);
    expect(daemon.left()).to.deep.equal([]);
    expect(terminalWasRestored(shell.output())).to.equal(true);
  });

  it('gives the sandbox back when its own terminal disappears', async () => {
    const shell = startCliInTerminal(['shell'], env);
    await shell.shows('INSIDE$');
    expect(daemon.left()).to.have.length(1);
    // to its shell and to it at once; the kernel's comes beside, as its session ends
    process.kill(-shell.pty.pid, 'SIGHUP');
    await eventually(() => daemon.left().length === 0, 'the sandbox is given back');
  });

  it("ends with 125 and the service's message if the terminal is refused", async () => {
    Object.assign(daemon.operations, { createExecToken: async () => 'stale' });
    const end = await cli(['shell', '0190d4a5-7b1e-7c3a-9f00-00000000dead'], {
      ...env,
      SANDPOOL_SERVER: `${daemon.url}/nowhere`,
    });
    expect(end.code).to.equal(125);
    expect(end.stderr).to.match(/^sandpool: .*NOT_FOUND/);
  });
});

/** The one process that the shell around the command line started. */
const childOf = (pid: number): number => {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .map(Number)
    .filter((id) => id > 0);
  if (child === undefined) throw new Error('it has no child');
  return child;
};

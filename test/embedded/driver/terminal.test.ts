import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { expect } from 'chai';
import type { Terminal } from '../../../src/contracts/sandbox-driver.ts';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

/** Reads a terminal as text, and lets a test wait for what it shows. */
class Screen {
  text = '';
  readonly terminal: Terminal;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
    terminal.stream.on('data', (bytes: Buffer) => {
      this.text += String(bytes);
    });
  }

  type(text: string): void {
    this.terminal.stream.write(text);
  }

  async shows(wanted: string): Promise<void> {
    await eventually(
      () => this.text.includes(wanted),
      `the terminal shows ${JSON.stringify(wanted)}`,
    ).catch((error: unknown) => {
      throw new Error(`it shows ${JSON.stringify(this.text.slice(-500))}`, { cause: error });
    });
  }
}

describe('a terminal in a real sandbox', function () {
  let spawned: WatchedDriver;
  let id: string;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
    id = (await spawned.launched()).id;
  });
  after(() => spawned.close());

  const attach = (argv: readonly string[] = ['sh'], cols = 80, rows = 24): Promise<Terminal> =>
    spawned.driver.attach(id, { argv, cols, rows });
  const processes = (): Promise<string> =>
    spawned.sh(id, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "');

  it('runs a shell on a controlling terminal of the requested size', async () => {
    const screen = new Screen(await attach(['sh'], 101, 33));
    screen.type('stty size; tty; echo $TERM\r');
    await screen.shows('33 101');
    await screen.shows('xterm-256color');
    screen.type('echo x > /dev/tty && exit 5\r');
    expect(await screen.terminal.exit).to.equal(5);
  });

  it('has the requested variables, which show nowhere else', async () => {
    const env = { PLANTED: 'canary\n\u0003 ä', EMPTY: '', LONG: 'x'.repeat(60_000) };
    const argv = ['sh', '-c', 'printf "%s" "$PLANTED$EMPTY$LONG" | sha256sum'];
    const screen = new Screen(await spawned.driver.attach(id, { argv, env, cols: 80, rows: 24 }));
    expect(await screen.terminal.exit).to.equal(0);
    const sum = createHash('sha256').update(Object.values(env).join('')).digest('hex');
    expect(screen.text).to.equal(`${sum}  -\r\n`);
  });

  it('has a device name inside, by which programs open it', async () => {
    const screen = new Screen(
      await attach(['sh', '-c', 'tty; echo by name > $(tty); ls /dev/pts']),
    );
    expect(await screen.terminal.exit).to.equal(0);
    // The one of the test before may not have been given back yet.
    const [, number = ''] = /^\/dev\/pts\/(\d+)\r\nby name\r\n/.exec(screen.text) ?? [];
    expect(screen.text.split('\r\n')[2]?.split(/\s+/)).to.include.members([number, 'ptmx']);
  });

  it('can be shared by tmux, which opens it by name', async function () {
    if (!existsSync('/usr/bin/tmux')) skipBecause(this, 'tmux is not installed');
    const screen = new Screen(
      await attach(['tmux', '-L', 'shared', 'new', 'echo in tm""ux; exec cat']),
    );
    await screen.shows('in tmux');
    expect(await spawned.sh(id, 'tmux -L shared kill-server && echo ended')).to.equal('ended\n');
    expect(await screen.terminal.exit).to.equal(1);
  });

  it('uses a device of the host if the sandbox has used up its own', async function () {
    if (!existsSync('/usr/bin/perl')) skipBecause(this, 'perl is not installed');
    const greedy = await attach([
      'perl',
      '-e',
      `my @held; while (open(my $one, '+<', '/dev/ptmx')) { push @held, $one } print 0+$!, "\\n"; <STDIN>;`,
    ]);
    await new Screen(greedy).shows(String(constants.errno.ENOSPC));
    const screen = new Screen(await attach(['sh', '-c', 'tty; echo x > /dev/tty; stty size']));
    expect(await screen.terminal.exit).to.equal(0);
    expect(screen.text).to.equal('not a tty\r\nx\r\n24 80\r\n');
    greedy.close();
    await greedy.exit;
  });

  it('can be resized, which its program notices', async () => {
    const screen = new Screen(await attach());
    screen.type("trap 'stty size' WINCH; echo ar''med\r");
    await screen.shows('armed');
    screen.terminal.resize(-1, 1e9);
    screen.terminal.resize(132, 43);
    await eventually(() => {
      screen.type('\r');
      return screen.text.includes('43 132');
    }, 'the new size shows');
    screen.terminal.close();
    await screen.terminal.exit;
  });

  it('forwards signals to the foreground', async () => {
    const screen = new Screen(await attach());
    screen.type('sleep 984; echo slept $?\r');
    await eventually(async () => (await processes()).includes('sleep 984'), 'it sleeps');
    screen.terminal.signal('TERM');
    await screen.shows('slept 143');
    screen.type('sleep 983; echo slept $?\r');
    await eventually(async () => (await processes()).includes('sleep 983'), 'it sleeps');
    screen.terminal.signal('KILL');
    await screen.shows('slept 137');
    screen.terminal.close();
    await screen.terminal.exit;
  });

  it('hangs up with SIGHUP, and kills programs that ignore it', async () => {
    const polite = new Screen(
      await attach([
        'sh',
        '-c',
        "trap '' TERM; trap 'echo hung up > /tmp/hangup; exit' HUP; echo armed; while :; do sleep 0.1; done",
      ]),
    );
    await polite.shows('armed');
    polite.terminal.close();
    await polite.terminal.exit;
    await eventually(
      async () => (await spawned.sh(id, 'cat /tmp/hangup 2>/dev/null')) === 'hung up\n',
      'it was hung up',
    );

    const stubborn = new Screen(
      await attach(['sh', '-c', "trap '' HUP TERM; echo armed; while :; do sleep 982; done"]),
    );
    await stubborn.shows('armed');
    stubborn.terminal.close();
    await stubborn.terminal.exit;
    await eventually(async () => !(await processes()).includes('sleep 982'), 'it is gone');
  });

  it('blocks a flood with a stalled reader, without lost output or slower terminals', async () => {
    const lines = 400_000;
    const flood = await attach(['sh', '-c', `stty -opost; seq 1 ${lines}`]);
    const other = new Screen(await attach(['cat']));
    await once(flood.stream, 'readable');
    // The window fills, and the flood stands still: nobody reads it.
    for (let round = 0; round < 20; round += 1) {
      other.type(`echo ${round}\r`);
      await other.shows(`echo ${round}`);
    }
    expect(await processes()).to.include(`seq 1 ${lines}`);
    expect(flood.stream.readableLength).to.be.lessThan(256 << 10);
    let bytes = 0;
    let rest = '';
    let expected = 1;
    for await (const chunk of flood.stream) {
      bytes += (chunk as Buffer).length;
      const parts = (rest + String(chunk)).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        if (Number(part) !== expected)
          throw new Error(`after ${expected - 1} comes ${JSON.stringify(part)}, at byte ${bytes}`);
        expected += 1;
      }
    }
    expect(expected - 1).to.equal(lines);
    expect(await flood.exit).to.equal(0);
    other.terminal.close();
    await other.terminal.exit;
  });

  it('blocks a writer whose input nobody reads', async () => {
    const terminal = await attach(['sh', '-c', 'stty raw -echo; echo raw; sleep 981']);
    const screen = new Screen(terminal);
    await screen.shows('raw');
    let taken = 0;
    for (let i = 0; i < 64; i += 1)
      terminal.stream.write(Buffer.alloc(16 << 10, 'x'), () => {
        taken += 16 << 10;
      });
    // Nothing more is taken while several commands behind it have run.
    for (let seen = -1; seen !== taken;) {
      seen = taken;
      for (let n = 0; n < 5; n += 1)
        expect(await spawned.sh(id, 'echo still quick')).to.equal('still quick\n');
    }
    expect(taken).to.be.lessThan(512 << 10);
    terminal.close();
    await terminal.exit;
  });

  it('delivers all that a command printed before its end', async () => {
    for (let round = 0; round < 10; round += 1) {
      const screen = new Screen(await attach(['sh', '-c', 'seq 1 2000; echo the end']));
      expect(await screen.terminal.exit).to.equal(0);
      expect(screen.text.split('\r\n').slice(-3)).to.deep.equal(['2000', 'the end', '']);
    }
  });
});

import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { execOrder, execScripts } from '../../src/k8s/streams/exec-scripts.ts';
import { TerminalHead, terminalOrder } from '../../src/k8s/streams/terminal-order.ts';

/** Those of this machine that images are likely to have. */
const SHELLS: readonly (readonly string[])[] = [
  ['/bin/sh'],
  ['bash', '--norc', '--posix'],
  ['busybox', 'sh'],
].filter(([file = '']) => spawnSync(file, ['-c', 'true']).error === undefined);

const SHOW = ['sh', '-c', 'printf "%s|%s" "$LANG" "$TERM"'];

/** What a script prints after its process id, in an image with that environment. */
const printed = (
  script: string,
  args: readonly string[],
  {
    env,
    input = '',
  }: { readonly env: Readonly<Record<string, string>>; readonly input?: string | Buffer },
): string =>
  spawnSync('/bin/sh', ['-c', script, 'sh', ...args], {
    env: { PATH: '/usr/bin:/bin', ...env },
    input,
  })
    .stdout.toString()
    .replace(/^\d+\n/, '')
    .replace(/token 0\n$/, '');

const ofCommand = (
  env: Readonly<Record<string, string>>,
  asked?: Readonly<Record<string, string>>,
): string =>
  printed(execScripts().exec, [], {
    env,
    input: execOrder({ argv: SHOW, env: asked, token: 'token ' }),
  });
const ofTerminal = (env: Readonly<Record<string, string>>): string =>
  printed(execScripts().terminal, SHOW, { env });

describe('the environment inside Pods', () => {
  it('has the LANG of every sandbox in commands, and no TERM', () => {
    expect(ofCommand({})).to.equal('C.UTF-8|');
    expect(ofCommand({ LANG: '' })).to.equal('C.UTF-8|');
  });

  it('has the LANG of image or template where one is given, and of the request before it', () => {
    expect(ofCommand({ LANG: 'de_DE.UTF-8' })).to.equal('de_DE.UTF-8|');
    expect(ofCommand({ LANG: 'de_DE.UTF-8' }, { LANG: 'C' })).to.equal('C|');
    expect(ofTerminal({ LANG: 'de_DE.UTF-8' })).to.equal('de_DE.UTF-8|xterm-256color');
  });

  it('has LANG and TERM in terminals, whatever TERM the runtime sets', () => {
    expect(ofTerminal({})).to.equal('C.UTF-8|xterm-256color');
    expect(ofTerminal({ TERM: 'xterm' })).to.equal('C.UTF-8|xterm-256color');
  });
});

describe('a script in a Pod', () => {
  const input = Buffer.alloc(1 << 20, 'rest\n'); // more than a pipe holds
  const afterItsLastWord = async (
    argv: readonly string[],
    first: Buffer,
    last: string,
  ): Promise<{ readonly stdout: string; readonly code: number | null; readonly lost?: Error }> => {
    const [file = '', ...args] = argv;
    const script = spawn(file, args, { env: { PATH: '/usr/bin:/bin' } });
    let stdout = '';
    let lost: Error | undefined;
    script.stdin.on('error', (error) => (lost = error));
    script.stdout.on('data', (piece: Buffer) => {
      stdout += String(piece);
      if (stdout.endsWith(last)) script.stdin.end(input);
    });
    script.stdin.write(first);
    const [code] = (await once(script, 'close')) as [number | null];
    return { stdout, code, lost };
  };

  // Else whoever carries its output cuts that off, as API servers do once something comes for a
  // container that has gone.
  it('stays until its input has ended, with what it said and its exit code', async () => {
    const command = await afterItsLastWord(
      ['/bin/sh', '-c', execScripts().exec, 'sh'],
      execOrder({ argv: ['true'], token: 'token ' }),
      'token 0\n',
    );
    expect(command.lost).to.equal(undefined);

    const refused = await afterItsLastWord(
      ['/bin/sh', '-c', execScripts().exec, 'sh'],
      execOrder({ argv: ['true'], cwd: '/no/such', token: 'token ' }),
      '\n',
    );
    expect([refused.lost, refused.code]).to.deep.equal([undefined, 125]);
  });
});

describe('the variables of a terminal in a Pod', () => {
  const HARD = {
    PLAIN: 'a b',
    EMPTY: '',
    LINES: '\n one\n\ntwo \n\n',
    CONTROL: '\x03\x04\x11\x13\x15\x16\x17\x1a\x1b[A\x7f\r\t\\0101%s\\',
    QUOTES: `'"$HOME\`id\`!`,
    MARKS: '+|%.!=',
    WIDE: 'ä\u{1f600}'.repeat(2_000),
    LONG: 'x'.repeat(60_000),
    LD_PRELOAD: '/no/such.so',
  };
  const names = Object.keys(HARD);
  const shown = [process.execPath, '-e', `console.log(JSON.stringify(process.env))`];

  for (const shell of SHELLS)
    it(`arrive as they are, by ${shell.join(' ')}`, () => {
      const [file = '', ...args] = shell;
      const { stdout, stderr } = spawnSync(
        file,
        [...args, '-c', execScripts().terminalEnv, 'sh', 'ready-1', ...shown],
        { env: { PATH: process.env['PATH'] ?? '' }, input: terminalOrder(HARD) },
      );
      const [pid = '', ready, json = ''] = stdout.toString().split('\n');

      expect(pid).to.match(/^\d+$/);
      expect(ready, stderr.toString()).to.equal('ready-1');
      const env = JSON.parse(json) as Record<string, string>;
      expect(Object.fromEntries(names.map((name) => [name, env[name]]))).to.deep.equal(HARD);
      expect(Object.keys(env).filter((name) => name.startsWith('sandpool_'))).to.deep.equal([]);
    });

  it('are sent in lines that a terminal neither cuts nor understands', () => {
    const lines = terminalOrder(HARD).toString().split('\n');

    expect(Math.max(...lines.map((line) => Buffer.byteLength(line)))).to.be.below(4_000);
    expect(lines.filter((line) => /[\x01-\x1f\x7f]/.test(line))).to.deep.equal([]);
  });

  it('are no part of what a client is shown of it, in whatever pieces that comes', () => {
    const echo = terminalOrder(HARD).toString().replaceAll('\n', '\r\n');
    const bytes = Buffer.from(`12\r\n${echo}ready-1\r\n$ first`);
    for (const size of [1, 7, bytes.length]) {
      const head = new TerminalHead('ready-1');
      let rest = '';
      for (let at = 0; at < bytes.length; at += size) {
        const piece = bytes.subarray(at, at + size);
        rest += head.isOver ? String(piece) : String(head.push(piece) ?? '');
      }
      expect([head.pid, rest]).to.deep.equal(['12', '$ first']);
    }
  });

  it('are not waited for without end where the shell of an image is none', () => {
    const head = new TerminalHead('ready-1');
    const noise = Buffer.alloc(1 << 20, 'x');
    const listen = (): void => {
      for (let times = 0; times < 1_000; times += 1) head.push(noise);
    };

    expect(listen).to.throw('something else');
  });
});

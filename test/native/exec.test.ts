import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { agentOrder, type AgentOrder } from '../../src/k8s/streams/agent-order.ts';
import { TerminalHead } from '../../src/k8s/streams/pod-terminal.ts';
import { openWorkshop, within, type Workshop } from './support.ts';

const SHOW = ['sh', '-c', 'printf "%s|%s" "$LANG" "$TERM"'];

/** What exec begins in a Pod's container, by pipes of this machine. */
describe('commands started by the agent of a Pod', () => {
  let workshop: Workshop;
  before(() => {
    workshop = openWorkshop();
  });
  after(() => workshop.close());

  const run = (
    order: AgentOrder,
    env: Readonly<Record<string, string>> = {},
    cut = 0,
  ): { readonly stdout: string; readonly stderr: string; readonly status: number | null } => {
    const bytes = agentOrder({ ...order, told: 'token ' });
    const { stdout, stderr, status } = spawnSync(workshop.launcher, ['run', `${bytes.length}`], {
      env: { PATH: '/usr/bin:/bin', ...env },
      input: bytes.subarray(0, bytes.length - cut),
    });
    return { stdout: stdout.toString().replace(/^\d+\n/, ''), stderr: stderr.toString(), status };
  };
  const shown = (env: Readonly<Record<string, string>>, asked = {}): string =>
    run({ argv: SHOW, env: asked }, env).stdout.replace(/token 0\n$/, '');

  it('have the LANG of every sandbox, and no TERM', () => {
    expect(shown({})).to.equal('C.UTF-8|');
    expect(shown({ LANG: '' })).to.equal('C.UTF-8|');
    expect(shown({ LANG: 'de_DE.UTF-8' })).to.equal('de_DE.UTF-8|');
    expect(shown({ LANG: 'de_DE.UTF-8' }, { LANG: 'C' })).to.equal('C|');
  });

  it('have LANG and TERM in terminals, whatever TERM the runtime sets', () => {
    const terminal = (env: Readonly<Record<string, string>>): string =>
      spawnSync(workshop.launcher, ['terminal', '0', ...SHOW], {
        env: { PATH: '/usr/bin:/bin', ...env },
      })
        .stdout.toString()
        .replace(/^\d+\n/, '');
    expect(terminal({})).to.equal('C.UTF-8|xterm-256color');
    expect(terminal({ TERM: 'xterm' })).to.equal('C.UTF-8|xterm-256color');
    expect(terminal({ LANG: 'de_DE.UTF-8' })).to.equal('de_DE.UTF-8|xterm-256color');
  });

  it('report their end after their output, on both streams', () => {
    const { stdout, stderr } = run({ argv: ['sh', '-c', 'echo out; echo err >&2; kill -9 $$'] });
    expect([stdout, stderr]).to.deep.equal(['out\ntoken 137\n', 'err\ntoken 137\n']);
    expect(run({ argv: ['/no/such'] }).stdout).to.equal('token 127\n');
    expect(run({ argv: ['/etc/passwd'] }).stdout).to.equal('token 126\n');
  });

  it('do not start if the order is truncated', () => {
    const { stdout, status } = run({ argv: ['echo', 'done'] }, {}, 3);
    expect([stdout, status]).to.deep.equal(['', 125]);
  });

  // Else whoever carries its output cuts that off, as API servers do once something comes for a
  // container that has gone.
  it('keep the agent until its input has ended, with output and exit code', async () => {
    for (const [order, last, status] of [
      [{ argv: ['true'] }, 'token 0\n', 0],
      [{ argv: ['true'], cwd: '/no/such' }, '\n', 125],
    ] as const) {
      const bytes = agentOrder({ ...order, told: 'token ' });
      const agent = spawn(workshop.launcher, ['run', `${bytes.length}`], { env: {} });
      let lost: Error | undefined;
      let said = '';
      agent.stdin.on('error', (error) => (lost = error));
      agent.stdout.on('data', (piece: Buffer) => {
        said += String(piece);
        if (said.endsWith(last)) agent.stdin.end(Buffer.alloc(1 << 20, 'rest\n'));
      });
      agent.stdin.write(bytes);
      const [code] = await within(once(agent, 'close'), 'it ends');
      expect([lost, code]).to.deep.equal([undefined, status]);
    }
  });

  it('are killed with their descendants and session, and nothing else', async () => {
    const script =
      'trap "" HUP; sh -c "sleep 1000 & sleep 1000" & setsid sleep 1000 & echo $!; wait';
    const tree = spawn('setsid', ['sh', '-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    const other = spawn('sleep', ['1000']);
    await within(once(tree.stdout, 'data'), 'it has begun');
    const ended = once(tree.stdout, 'close'); // all of them have it open
    const { status } = spawnSync(workshop.launcher, ['end', `${tree.pid}`, '1']);
    await within(ended, 'all have ended');
    expect([status, other.exitCode, other.signalCode]).to.deep.equal([0, null, null]);
    other.kill();
  });
});

describe('the first output of a terminal in a Pod', () => {
  it('is hidden from the client, in whatever pieces it arrives', () => {
    const bytes = Buffer.from('12\nready\r\n$ first');
    for (const size of [1, 7, bytes.length]) {
      const head = new TerminalHead('ready');
      let rest = '';
      for (let at = 0; at < bytes.length; at += size) {
        const piece = bytes.subarray(at, at + size);
        rest += head.isOver ? String(piece) : String(head.push(piece) ?? '');
      }
      expect([head.pid, rest]).to.deep.equal(['12', '$ first']);
    }
  });

  it('is awaited within a bound if a sandbox sends something else', () => {
    const head = new TerminalHead('ready');
    const noise = Buffer.alloc(1 << 20, 'x');
    expect(() => {
      for (let times = 0; times < 10; times += 1) head.push(noise);
    }).to.throw('unexpected answer');
  });
});

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readlinkSync, statSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { echoServer } from '../support/builders/echo-server.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  asRoot,
  collect,
  hostUid,
  makeCgroups,
  openWorkshop,
  orderText,
  startSandbox,
  statusOf,
  within,
  writable,
  type Sandbox,
  type Workshop,
} from './support.ts';

describe('launcher forward', () => {
  let workshop: Workshop;
  let folder: string;
  before(() => {
    workshop = openWorkshop();
    folder = join(workshop.folder, 'sockets');
    mkdirSync(folder, { mode: 0o700 });
  });
  after(() => workshop.close());

  const forward = async (
    sandbox: Pick<Sandbox, 'pid' | 'startTime' | 'startAs'>,
    name: string,
    {
      cgroups = [],
      within: place = folder,
    }: { readonly cgroups?: readonly string[]; readonly within?: string } = {},
  ): Promise<ChildProcess> => {
    const identity =
      sandbox.startAs === undefined ? {} : { uid: sandbox.startAs, gid: sandbox.startAs };
    const child = spawn(workshop.launcher, ['forward'], {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      env: { HOST_SECRET: 'of the daemon' },
      ...identity,
    });
    const output = collect(child);
    writable(child, 3).end(
      orderText([
        ['pid', String(sandbox.pid)],
        ['starttime', sandbox.startTime],
        ...cgroups.map((group) => ['cgroup', group]),
        ['arg', place],
        ['arg', name],
      ]),
    );
    await output.shows('ready');
    return child;
  };

  /** The answer's byte, and the connection. */
  const dial = async (
    name: string,
    port: number,
  ): Promise<{ readonly code: number; readonly socket: Socket }> => {
    const socket = connect(join(folder, name));
    socket.on('error', () => {});
    socket.write(Buffer.from([port >> 8, port & 255]));
    await within(once(socket, 'readable'), 'the answer');
    const answer: Buffer | null = socket.read(1);
    return { code: answer?.readUInt8(0) ?? -1, socket };
  };

  /** One dial at a time: a second connection would stand before the first at a server of one. */
  const reached = async (name: string, port: number): Promise<Socket> => {
    let reachedSocket: Socket | undefined;
    await eventually(async () => {
      const { code, socket } = await dial(name, port);
      if (code === 0) reachedSocket = socket;
      else socket.destroy();
      return code === 0;
    }, 'the port is listened on');
    if (!reachedSocket) throw new Error('no connection');
    return reachedSocket;
  };

  const echo = async (socket: Socket, text: string): Promise<string> => {
    socket.write(text);
    let got = '';
    while (got.length < text.length)
      got += String((await within(once(socket, 'data'), 'the echo'))[0]);
    return got;
  };

  it("carries connections to the sandbox's own loopback, and reports closed ports", async () => {
    const sandbox = await startSandbox(workshop, { command: echoServer(7_000) });
    const child = await forward(sandbox, 'own');
    expect(await echo(await reached('own', 7_000), 'over and back')).to.equal('over and back');
    expect((await dial('own', 7_001)).code).to.equal(111);
    const outside = createServer().listen(0, '127.0.0.1');
    await once(outside, 'listening');
    const address = outside.address();
    if (!address || typeof address === 'string') throw new Error('no port');
    expect((await dial('own', address.port)).code).to.equal(111); // the host's loopback is another
    outside.close();
    child.stdin?.end();
    await within(once(child, 'close'), 'it ends');
    await sandbox.stop();
  });

  it('has network, uid, cgroups and filter of the sandbox, no capabilities, and a private socket', async function () {
    if (!asRoot) skipBecause(this, 'needs root');
    const cgroups = makeCgroups(`forward-${process.pid}`);
    const sandbox = await startSandbox(workshop, {
      command: ['sleep', 'infinity'],
      cgroups: cgroups.folders,
    });
    const child = await forward(sandbox, 'held', { cgroups: cgroups.folders });
    const ended = once(child, 'close');
    const pid = child.pid ?? 0;
    const status = statusOf(pid);
    for (const kind of ['Uid', 'Gid'])
      expect(status.get(kind)?.split('\t')).to.deep.equal(Array(4).fill(String(hostUid)));
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(status.get(set), set).to.match(/^0+$/);
    expect([
      status.get('NoNewPrivs'),
      status.get('Seccomp'),
      status.get('Groups')?.trim(),
    ]).to.deep.equal(['1', '2', '']);
    const namespace = (of: number, kind: string) => readlinkSync(`/proc/${of}/ns/${kind}`);
    expect(namespace(pid, 'net')).to.equal(namespace(sandbox.pid, 'net'));
    for (const kind of ['mnt', 'pid', 'user'])
      expect(namespace(pid, kind)).to.equal(namespace(process.pid, kind));
    const found = statSync(join(folder, 'held'));
    expect([found.uid, found.mode & 0o777]).to.deep.equal([0, 0o600]);
    await sandbox.stop();
    await within(ended, 'it ends with the sandbox');
    cgroups.close();
  });

  it("reaches only the sandbox's own listeners on the host's network", async function () {
    if (!asRoot) skipBecause(this, 'without root every listener has the same uid');
    const sandbox = await startSandbox(workshop, { command: echoServer(17_321), network: 'host' });
    const child = await forward(sandbox, 'host');
    expect(await echo(await reached('host', 17_321), 'own')).to.equal('own');
    const outside = createServer().listen(0, '127.0.0.1');
    await once(outside, 'listening');
    const address = outside.address();
    if (!address || typeof address === 'string') throw new Error('no port');
    expect((await dial('host', address.port)).code).to.equal(13);
    outside.close();
    child.kill();
    await sandbox.stop();
  });

  it('works without root for a sandbox of the same user', async function () {
    if (!asRoot) skipBecause(this, 'all of these tests run without root');
    const unprivileged = 200_002;
    const place = join(workshop.folder, 'unprivileged');
    mkdirSync(place, { mode: 0o700 });
    chownSync(place, unprivileged, unprivileged);
    const sandbox = await startSandbox(workshop, {
      command: echoServer(7_000),
      startAs: unprivileged,
    });
    const child = await forward(sandbox, 'own', { within: place });
    const status = statusOf(child.pid ?? 0);
    expect([
      status.get('CapEff'),
      status.get('CapPrm'),
      status.get('NoNewPrivs'),
      status.get('Seccomp'),
    ]).to.deep.equal(['0000000000000000', '0000000000000000', '1', '2']);
    expect(await echo(await reached('../unprivileged/own', 7_000), 'as anyone')).to.equal(
      'as anyone',
    );
    child.kill();
    await sandbox.stop();
  });

  it('ends connections with their sandbox, and half of one with the other half', async () => {
    const sandbox = await startSandbox(workshop, {
      command: [
        'perl',
        '-e',
        `
      use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:7000", Listen => 8) or die;
      while (my $c = $s->accept) { my $all = ''; while (sysread $c, my $b, 4096) { $all .= $b } syswrite $c, "got $all"; close $c }`,
      ],
    });
    const child = await forward(sandbox, 'ends');
    const ended = once(child, 'close');
    const half = await reached('ends', 7_000);
    half.end('all of it');
    let got = '';
    half.on('data', (bytes: Buffer) => {
      got += String(bytes);
    });
    await within(once(half, 'end'), 'the end');
    expect(got).to.equal('got all of it');
    const open = await reached('ends', 7_000);
    const closed = once(open, 'close');
    open.resume();
    await sandbox.stop();
    await within(closed, 'the connection ends');
    await within(ended, 'the forwarder ends');
  });

  it('accepts 512 connections, refuses the next with a message, and survives when all leave at once', async () => {
    const sandbox = await startSandbox(workshop, { command: ['sleep', 'infinity'] });
    const child = await forward(sandbox, 'many');
    child.kill('SIGSTOP'); // as while the sandbox has used up its cpu limit
    const waiting = Array.from({ length: 512 }, () =>
      connect(join(folder, 'many')).on('error', () => {}),
    );
    await Promise.all(waiting.map((socket) => once(socket, 'connect')));
    child.kill('SIGCONT');
    const refused = connect(join(folder, 'many')).on('error', () => {});
    expect(
      String(
        await within(once(refused, 'data'), 'the refusal').then(([bytes]: unknown[]) =>
          (bytes as Buffer).readUInt8(0),
        ),
      ),
    ).to.equal('11');
    for (const socket of waiting) socket.destroy();
    await eventually(() => child.exitCode === null, 'it lives');
    await eventually(async () => {
      // It takes each end in its turn, and refuses what comes before the first.
      const dialled = await dial('many', 7_000).catch(() => undefined);
      dialled?.socket.destroy();
      return dialled?.code === 111;
    }, 'it takes connections again');
    child.kill();
    await sandbox.stop();
  });

  it('does nothing without go, for an ended process, or for a name that leads out of the folder', async () => {
    const sandbox = await startSandbox(workshop, { command: ['sleep', 'infinity'] });
    const refusal = async (
      tokens: readonly (readonly string[])[],
      end?: string,
    ): Promise<string> => {
      const child = spawn(workshop.launcher, ['forward'], {
        stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      });
      const output = collect(child);
      writable(child, 3).end(orderText(tokens, end));
      const { code, stderr } = await output.end;
      expect(code).to.equal(125);
      return stderr;
    };
    const whole = [
      ['pid', String(sandbox.pid)],
      ['starttime', sandbox.startTime],
      ['arg', folder],
      ['arg', 'name'],
    ];
    expect(await refusal(whole, '')).to.contain('ended before its go');
    expect(
      await refusal([
        ['pid', String(sandbox.pid)],
        ['starttime', '1'],
        ['arg', folder],
        ['arg', 'name'],
      ]),
    ).to.contain('the sandbox is gone');
    expect(await refusal([...whole.slice(0, 3), ['arg', '../name']])).to.contain('no name');
    await sandbox.stop();
  });
});

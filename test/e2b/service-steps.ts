import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { ProxyBetween } from './a-proxy-between.ts';
import type { Sdk, SdkHandle, SdkOptions, SdkSandbox } from './a-sdk.ts';

/** One sandbox as one version of the package sees it. */
export interface ServiceWorld {
  readonly Sandbox: Sdk;
  readonly options: SdkOptions;
  /** Created with the variable OF_CLAIM, which says `claim`. */
  readonly sandbox: SdkSandbox;
  /** Waits for what nothing announces; `eventually` unless given. */
  readonly until?: (isSo: () => boolean, what: string) => Promise<void>;
}

export type ServiceStep = (world: ServiceWorld) => Promise<void>;

/** What E2B's SDKs may expect inside of a sandbox, by what it comes to. */
export const SERVICE_STEPS = {
  'runs commands, and says how they ended': async ({ sandbox }) => {
    const { commands } = sandbox;
    const seen: string[] = [];
    const envs = { OWN: 'own' };
    const onStdout = (text: string): void => void seen.push(text);
    const script = 'echo "$OF_CLAIM $OWN"; echo no >&2; pwd';
    const done = await commands.run(script, { envs, cwd: '/tmp', onStdout });
    const failed = await rejection(commands.run('exit 3'));
    const root = await rejection(commands.run('id', { user: 'root' }));
    const late = await rejection(commands.run('sleep 60', { timeoutMs: 500 }));

    expect(done).to.include({ exitCode: 0, stdout: 'claim own\n/tmp\n', stderr: 'no\n' });
    expect(seen.join('')).to.equal('claim own\n/tmp\n');
    expect(failed).to.include({ name: 'CommandExitError', exitCode: 3 });
    expect(root.message).to.contain('"root"');
    expect(late.name).to.equal('TimeoutError');
    const { stdout } = await commands.run('yes 世é | head -c 300000');
    expect(stdout).to.equal('世é\n'.repeat(50_000));
  },

  'comes back to a command that it left, gives it input, and kills it once': async ({
    sandbox,
  }) => {
    const { commands } = sandbox;
    const left = await commands.run('cat', { background: true, stdin: true });
    await left.disconnect();
    expect((await commands.list()).map(({ pid }) => pid)).to.include(left.pid);
    const cat = await commands.connect(left.pid);
    await commands.sendStdin(cat.pid, 'hé\n');
    await ended(sandbox, cat);
    const sleep = await commands.run('sleep 100', { background: true });
    const killed = await commands.kill(sleep.pid);
    const end = await rejection(sleep.wait());
    const again = await commands.kill(sleep.pid);

    expect([killed, again]).to.deep.equal([true, false]);
    expect(end).to.include({ name: 'CommandExitError', message: 'signal: killed' });
    const none = await rejection(commands.connect(4_000_000_000));
    expect(none.name).to.equal('NotFoundError');
  },

  'has a terminal, and changes its size': async ({ sandbox }) => {
    let seen = '';
    const onData = (bytes: Uint8Array): void => void (seen += Buffer.from(bytes).toString());
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData });
    await sandbox.pty.resize(terminal.pid, { cols: 101, rows: 31 });
    await sandbox.pty.sendInput(terminal.pid, Buffer.from('stty size\nexit\n'));
    const { exitCode } = await terminal.wait();

    expect(exitCode).to.equal(0);
    expect(seen).to.contain('31 101');
  },

  'writes, reads, lists, moves and removes files': async ({ sandbox }) => {
    const { files } = sandbox;
    const written = await files.write('/tmp/new/é.txt', 'content');
    expect(written).to.include({ name: 'é.txt', path: '/tmp/new/é.txt', type: 'file' });
    expect(await files.read('/tmp/new/é.txt')).to.equal('content');
    await files.write('/tmp/new/empty', '');
    expect(await files.read('/tmp/new/empty')).to.equal('');
    await files.write([
      { path: '/tmp/many/1', data: 'one' },
      { path: 'two', data: 'two' },
    ]);
    expect(await files.read('/home/user/two')).to.equal('two');
    const large = 'large '.repeat(500_000);
    await files.write('/tmp/large', new Blob([large]).stream());
    expect(await files.read('/tmp/large', { gzip: true })).to.equal(large);

    const names = (await files.list('/tmp/new')).map(({ name, type }) => `${name} ${type}`);
    expect(names).to.deep.equal(['empty file', 'é.txt file']);
    expect([await files.makeDir('/tmp/a/b'), await files.makeDir('/tmp/a/b')]) //
      .to.deep.equal([true, false]);
    expect(await files.rename('/tmp/large', '/tmp/a/c/moved')).to.include({ name: 'moved' });
    expect(await files.getInfo('/tmp/a/c/moved')).to.include({
      ...{ path: '/tmp/a/c/moved', type: 'file', size: large.length },
    });
    await files.remove('/tmp/a');
    expect([await files.exists('/tmp/a'), await files.exists('/tmp/new')]) //
      .to.deep.equal([false, true]);
    expect((await rejection(files.read('/tmp/none'))).name).to.match(/NotFoundError$/);
  },

  'is told what changes in a folder': async ({ sandbox }) => {
    const { files, commands } = sandbox;
    await files.makeDir('/tmp/watched');
    const seen: string[] = [];
    const watch = await files.watchDir('/tmp/watched', ({ type, name }) => {
      seen.push(`${type} ${name}`);
    });
    await files.write('/tmp/watched/by-api', '1');
    await commands.run('echo 1 > /tmp/watched/by-hand; rm /tmp/watched/by-hand');
    await eventually(() => seen.includes('remove by-hand'), 'the last change is told');
    await watch.stop();

    expect(seen).to.include.members(['create by-api', 'write by-api', 'create by-hand']);
  },

  'says that a silent command is alive': async ({
    Sandbox,
    options,
    sandbox,
    until = eventually,
  }) => {
    let heard = 0;
    const asked = new Set<unknown>();
    const between = new ProxyBetween(options.sandboxUrl, {
      request: (headers) => {
        asked.add(headers['keepalive-ping-interval']);
        headers['keepalive-ping-interval'] = '1';
      },
      frame: (frame) => {
        if (frame.text.includes('"keepalive"')) heard += 1;
        return [frame];
      },
    });
    try {
      const through = { ...options, sandboxUrl: await between.start() };
      const { commands } = await Sandbox.connect(sandbox.sandboxId, through);
      const untilTold = 'until [ -e /tmp/enough ]; do sleep 0.1; done; echo over';
      const silent = await commands.run(untilTold, { background: true });
      await until(() => heard > 1, 'it is said to be alive');
      await sandbox.files.write('/tmp/enough', '');
      const { stdout } = await silent.wait();
      expect(stdout).to.equal('over\n');
      // By themselves they wait 300 s for the next byte.
      expect([...asked]).to.include('50');
    } finally {
      between.stop();
    }
  },

  'says that it is gone once it was killed': async ({ Sandbox, options }) => {
    const other = await Sandbox.create('base', options);
    await other.kill();
    expect(await other.isRunning()).to.equal(false);
    const errors = [
      await rejection(other.commands.run('true')),
      await rejection(other.files.read('/tmp/x')),
    ];
    expect(errors.map(({ name }) => name).join(' ')).to.match(
      /^(TimeoutError|(Sandbox)?NotFoundError) TimeoutError$/,
    );
  },
} satisfies Readonly<Record<string, ServiceStep>>;

/** Ends a `cat`; versions before 2.24 can only kill it. */
const ended = async ({ commands }: SdkSandbox, cat: SdkHandle): Promise<void> => {
  if (commands.closeStdin) {
    await commands.closeStdin(cat.pid);
    expect(await cat.wait()).to.include({ exitCode: 0, stdout: 'hé\n' });
  } else {
    expect(await cat.kill()).to.equal(true);
    await rejection(cat.wait());
  }
};

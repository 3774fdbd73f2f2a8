import { expect } from 'chai';
import { eventually } from '../../support/harness/eventually.ts';
import { onAServedSandbox } from './a-served-sandbox.ts';
import { call, RpcStream, type Json, type RpcAnswer } from './rpc-client.ts';

describe("the filesystem for E2B's SDKs", function () {
  const served = onAServedSandbox();

  const ask = (method: string, body: unknown, headers?: Record<string, string>) =>
    call(served().port, `/filesystem.Filesystem/${method}`, body, headers);
  const watch = (body: unknown) =>
    RpcStream.open(served().port, '/filesystem.Filesystem/WatchDir', body);
  const sh = (script: string): Promise<string> =>
    served().driver.sh(served().sandboxId, `set -e; cd /tmp; ${script}`);
  const entryOf = ({ json }: RpcAnswer): Json => json['entry'] as Json;

  it('describes a path: kind, owner and size', async () => {
    await sh("printf hello > file; chmod 4640 file; touch -d '2024-05-06T07:08:09.5Z' file");
    await sh('ln -sf file link; ln -sf /tmp to-folder; ln -sf nowhere broken');
    const { status, json } = await ask('Stat', { path: '/tmp/file' });

    expect(status).to.equal(200);
    expect(json['entry']).to.deep.equal({
      name: 'file',
      type: 'FILE_TYPE_FILE',
      path: '/tmp/file',
      size: '5',
      mode: 0o4640,
      permissions: '-rwSr-----'.replace('x', '-'),
      owner: entryOf({ status, json })['owner'],
      group: entryOf({ status, json })['group'],
      modifiedTime: '2024-05-06T07:08:09.500Z',
    });
    expect(entryOf(await ask('Stat', { path: '/tmp/link' }))).to.include({
      type: 'FILE_TYPE_FILE',
      symlinkTarget: '/tmp/file',
      permissions: 'lrwxrwxrwx',
    });
    expect(entryOf(await ask('Stat', { path: '/tmp/to-folder' }))) //
      .to.include({ type: 'FILE_TYPE_DIRECTORY' });
    expect(entryOf(await ask('Stat', { path: '/tmp/broken' }))) //
      .to.include({ type: 'FILE_TYPE_SYMLINK' });
  });

  it('resolves relative paths, ~ and /home/user to the home', async () => {
    await sh('mkdir -p ~/deep; touch ~/deep/file');
    const paths = ['deep/file', './deep/../deep/file', '~/deep/file', '/home/user/deep/file'];
    const found = [];
    for (const path of paths) found.push(entryOf(await ask('Stat', { path }))['path']);

    const home = '/home/sandbox/deep/file';
    expect(found).to.deep.equal([home, home, home, '/home/user/deep/file']);
    const entries = (await ask('ListDir', { path: '' })).json['entries'] as Json[];
    expect(entries.map(({ path }) => path)).to.include('/home/sandbox/deep');
    expect(await sh('ls /home/user/deep')).to.equal('file\n');
  });

  it('lists a folder to a depth, without the folder itself', async () => {
    await sh('mkdir -p listed/a/b; touch listed/a/b/c listed/z; ln -s / listed/root');
    const listed = async (depth?: number): Promise<readonly unknown[]> => {
      const { json } = await ask('ListDir', { path: '/tmp/listed/', ...(depth ? { depth } : {}) });
      return (json['entries'] as Json[]).map(({ path, type }) => `${String(path)} ${String(type)}`);
    };
    const top = [
      '/tmp/listed/a FILE_TYPE_DIRECTORY',
      '/tmp/listed/root FILE_TYPE_DIRECTORY',
      '/tmp/listed/z FILE_TYPE_FILE',
    ];
    expect(await listed()).to.deep.equal(top);
    expect(await listed(1)).to.deep.equal(top);
    expect(await listed(4_000_000)).to.deep.equal([
      ...[top[0], '/tmp/listed/a/b FILE_TYPE_DIRECTORY', '/tmp/listed/a/b/c FILE_TYPE_FILE'],
      ...top.slice(1),
    ]);
  });

  it('creates folders with parents, moves into new ones, and removes', async () => {
    const made = await ask('MakeDir', { path: '/tmp/made/of/many' });
    const again = await ask('MakeDir', { path: '/tmp/made/of/many' });
    await sh('echo one > made/from; echo two > made/to');
    const moved = await ask('Move', { source: '/tmp/made/from', destination: '/tmp/made/to' });
    const far = await ask('Move', { source: '/tmp/made/to', destination: '/tmp/made/x/y' });
    const removed = await ask('Remove', { path: '/tmp/made' });
    const gone = await ask('Remove', { path: '/tmp/made' });

    expect(entryOf(made)).to.include({ path: '/tmp/made/of/many', type: 'FILE_TYPE_DIRECTORY' });
    expect(refusal(again)).to.deep.equal([409, 'already_exists']);
    expect(entryOf(moved)).to.include({ path: '/tmp/made/to', size: '4' });
    expect(entryOf(far)).to.include({ path: '/tmp/made/x/y' });
    expect([removed, gone]).to.deep.equal([
      { status: 200, json: {} },
      { status: 200, json: {} },
    ]);
    expect(refusal(await ask('Stat', { path: '/tmp/made' }))).to.deep.equal([404, 'not_found']);
  });

  it('reports changes in a folder', async () => {
    await sh('mkdir -p seen');
    const stream = await watch({ path: '/tmp/seen', recursive: true, includeEntry: true });
    await stream.until((message) => 'start' in message);
    await sh('mkdir seen/new; echo 1 > seen/new/file; chmod 600 seen/new/file; rm -r seen/new');
    await stream.until((message) => told(message) === 'EVENT_TYPE_REMOVE new');

    const seen = stream.messages.map(told);
    expect(seen).to.include.members(['EVENT_TYPE_CREATE new', 'EVENT_TYPE_REMOVE new']);
    await sh('touch seen/kept');
    const kept = await stream.until((message) => told(message) === 'EVENT_TYPE_CREATE kept');
    expect(kept['filesystem']).to.have.nested.include({ 'entry.path': '/tmp/seen/kept' });
    await sh('rm -r seen');
    expect(await stream.end()).to.deep.equal({});
  });

  it('buffers changes for a client that polls', async () => {
    await sh('mkdir -p polled');
    const { watcherId } = (await ask('CreateWatcher', { path: '/tmp/polled' })).json;
    const seen: string[] = [];
    const take = async (): Promise<void> => {
      const { json } = await ask('GetWatcherEvents', { watcherId });
      for (const event of (json['events'] ?? []) as Json[])
        seen.push(`${String(event['type'])} ${String(event['name'])}`);
    };
    await sh('echo 1 > polled/file; rm polled/file');
    await eventually(
      async () => {
        await take();
        return seen.at(-1) === 'EVENT_TYPE_REMOVE file';
      },
      'it is told of the end',
      () => seen,
    );
    expect(seen[0]).to.equal('EVENT_TYPE_CREATE file');
    expect(await ask('RemoveWatcher', { watcherId })).to.deep.equal({ status: 200, json: {} });
    expect(refusal(await ask('GetWatcherEvents', { watcherId }))).to.deep.equal([404, 'not_found']);
  });

  it('allows eight polled watchers per sandbox', async () => {
    const made = [];
    for (let count = 0; count < 9; count += 1)
      made.push(await ask('CreateWatcher', { path: '/tmp' }));

    expect(made.map(({ status }) => status)).to.deep.equal([...Array(8).fill(200), 429]);
    expect(made.at(-1)?.json).to.include({ code: 'resource_exhausted' });
    for (const { json } of made.slice(0, 8)) await ask('RemoveWatcher', json);
    const { json } = await ask('CreateWatcher', { path: '/tmp' });
    expect(json['watcherId']).to.be.a('string');
    await ask('RemoveWatcher', json);
  });

  it('reports to a watcher that its sandbox has ended', async () => {
    const own = served().sandboxId;
    const { id, revision } = await served().driver.launched();
    served().sandboxId = id;
    try {
      const { watcherId } = (await ask('CreateWatcher', { path: '/tmp' })).json;
      expect((await ask('GetWatcherEvents', { watcherId })).status).to.equal(200);
      await served().driver.driver.retire(id, revision);
      await eventually(
        async () => (await ask('GetWatcherEvents', { watcherId })).status === 404,
        'it has ended',
      );
    } finally {
      served().sandboxId = own;
    }
  });

  it('refuses with a code and the name of the fault', async () => {
    await sh('touch plain; mkdir -p folder');
    for (const [method, body, expected] of [
      ['Stat', { path: '/tmp/none' }, [404, 'not_found']],
      ['Stat', { path: '/tmp/a\0b' }, [400, 'invalid_argument']],
      ['Stat', { path: `/${'x'.repeat(5_000)}` }, [400, 'invalid_argument']],
      ['Stat', { path: '/tmp/\ud800' }, [400, 'invalid_argument']],
      ['MakeDir', { path: '/tmp/a\0b' }, [400, 'invalid_argument']],
      ['Remove', { path: `/${'x'.repeat(5_000)}` }, [400, 'invalid_argument']],
      ['Move', { source: '/tmp/plain', destination: '/tmp/\udfff' }, [400, 'invalid_argument']],
      ['WatchDir', {}, [415, undefined]],
      ['Stat', { path: '~root/x' }, [400, 'invalid_argument']],
      ['ListDir', { path: '/tmp/none' }, [404, 'not_found']],
      ['ListDir', { path: '/tmp/plain' }, [400, 'invalid_argument']],
      ['MakeDir', { path: '/tmp/plain' }, [400, 'invalid_argument']],
      ['MakeDir', { path: '/tmp/plain/below' }, [400, 'invalid_argument']],
      ['Move', { source: '/tmp/none', destination: '/tmp/x/y' }, [404, 'not_found']],
      ['CreateWatcher', { path: '/tmp/plain' }, [400, 'invalid_argument']],
      ['CreateWatcher', { path: '/tmp/none' }, [404, 'not_found']],
      ['RemoveWatcher', { watcherId: 'x' }, [404, 'not_found']],
    ] as const)
      expect(refusal(await ask(method, body)), JSON.stringify([method, body]).slice(0, 99)) //
        .to.deep.equal(expected);
    expect(await sh('ls x 2>&1 || true')).to.contain('No such file');
    const none = await watch({ path: '/tmp/none' });
    expect((await none.end())['error']).to.include({ code: 'not_found' });
    const root = { authorization: `Basic ${Buffer.from('root:').toString('base64')}` };
    const asRoot = await ask('Stat', { path: '/' }, root);
    expect(refusal(asRoot)).to.deep.equal([400, 'invalid_argument']);
    expect(asRoot.json['message']).to.contain('"root"');
  });
});

const refusal = ({ status, json }: RpcAnswer): readonly unknown[] => [status, json['code']];

const told = (message: Json): string => {
  const { type, name } = (message['filesystem'] ?? {}) as Json;
  return `${String(type)} ${String(name)}`;
};

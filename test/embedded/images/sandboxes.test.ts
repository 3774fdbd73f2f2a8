import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { programEntries } from '../../support/builders/a-root-file-system.ts';
import type { WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import {
  anImageDefinition,
  anImageDriver,
  imageFolders,
  type ImageFolders,
} from '../../support/harness/an-image-driver.ts';
import {
  gzipLayer,
  plainLayer,
  tarOf,
  writeLayout,
  type TarEntry,
} from '../../support/builders/an-oci-layout.ts';
import { anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

describe('sandboxes made from images', function () {
  let folders: ImageFolders;
  let under: WatchedDriver;
  let programs: Buffer;

  before(async () => {
    buildLauncher();
    programs = await tarOf(programEntries());
    folders = imageFolders();
    under = await anImageDriver(folders);
  });
  after(async () => {
    await under.close();
    folders.remove();
  });

  const layered = async (
    name: string,
    layers: readonly (readonly TarEntry[])[],
    config: unknown = {},
  ): Promise<string> => {
    const above = await Promise.all(layers.map(async (entries) => gzipLayer(await tarOf(entries))));
    return writeLayout(join(folders.sources, name), {
      layers: [plainLayer(programs), ...above],
      config,
    });
  };
  const started = async (...terms: Parameters<typeof anImageDefinition>) =>
    (await under.launched(anOrder(anImageDefinition(...terms)))).id;
  const failed = async (...terms: Parameters<typeof anImageDefinition>): Promise<string> => {
    const { id } = await under.driver.launch(anOrder(anImageDefinition(...terms)), permitted);
    const { vitals } = await under.log.when(id, 'gone');
    return vitals.kind === 'gone' ? vitals.reason : '';
  };

  it('see the merged layers, with whiteouts applied', async () => {
    await layered('layers', [
      [
        { name: 'data', type: 'directory' },
        { name: 'data/kept', content: 'kept' },
        { name: 'data/hidden', content: 'x' },
        { name: 'old', type: 'directory' },
        { name: 'old/below', content: 'x' },
      ],
      [
        { name: 'data/.wh.hidden' },
        { name: 'data/new', content: 'new' },
        { name: 'old/fresh', content: 'fresh' },
        { name: 'old/.wh..wh..opq' },
      ],
    ]);
    const id = await started('oci:layers');
    expect(await under.sh(id, 'ls /data /old; cat /data/kept /data/new /old/fresh')).to.equal(
      '/data:\nkept\nnew\n\n/old:\nfresh\nkeptnewfresh',
    );
  });

  it('use the variables, user, folder and command of the configuration', async () => {
    await layered(
      'configured',
      [
        [
          {
            name: 'etc/passwd',
            content: 'root:x:0:0:root:/root:/bin/sh\nworker:x:1234:5678:w:/work:/bin/sh\n',
          },
          { name: 'etc/group', content: 'staff:x:5678:\n' },
          { name: 'work', type: 'directory' },
        ],
      ],
      {
        Env: ['COLOUR=blue', 'TEMPLATE=image', 'PATH=/usr/bin:/bin'],
        User: 'worker',
        WorkingDir: '/work',
        Entrypoint: ['/bin/sh', '-c'],
        Cmd: ['sleep 4321'],
      },
    );
    const id = await started('oci:configured', {}, { env: { TEMPLATE: 'template' } });
    expect(await under.sh(id, 'echo $COLOUR $TEMPLATE $PATH $USER; pwd; id')).to.equal(
      'blue template /usr/bin:/bin worker\n/work\nuid=1234(worker) gid=5678(staff) groups=5678(staff)\n',
    );
    expect(await under.sh(id, 'cat /proc/2/cmdline')).to.include('4321');
    expect(
      await under.sh(
        id,
        'cat /proc/2/status | while read a b c; do [ "$a" = Uid: ] && echo $b; done',
      ),
    ).to.equal('1234\n');
  });

  it('take command as the entrypoint and args as the command', async () => {
    await layered('commands', [], { Entrypoint: ['sleep'], Cmd: ['1001'] });
    const commandOf = async (given: Parameters<typeof anImageDefinition>[1]): Promise<string> =>
      under
        .sh(await started('oci:commands', given), 'cat /proc/2/cmdline')
        .then((text) => text.replaceAll('\0', ' ').trim());
    expect(await commandOf({})).to.equal('sleep 1001');
    expect(await commandOf({ args: ['1002'] })).to.equal('sleep 1002');
    expect(await commandOf({ command: ['/bin/sleep', '1003'] })).to.equal('/bin/sleep 1003');
    expect(await commandOf({ command: ['/bin/sleep'], args: ['1004'] })).to.equal(
      '/bin/sleep 1004',
    );
  });

  it('never run as root, whatever the image says', async () => {
    await layered('root', [], { User: '0:0', Cmd: ['sleep', 'infinity'] });
    const id = await started('oci:root', {});
    expect(await under.sh(id, 'id -u; id -un')).to.equal('1000\nsandbox\n');
  });

  it('share one unpacked image, and cannot write to it', async function () {
    const digest = await layered('shared', [
      [
        { name: 'open', type: 'directory', mode: 0o777 },
        { name: 'open/file', mode: 0o666, content: 'x' },
        { name: 'suid', mode: 0o6755, content: 'x' },
      ],
    ]);
    const [one, two] = await Promise.all([started('oci:shared'), started('oci:shared')]);
    for (const id of [one, two]) {
      expect(
        await under.sh(
          id,
          'for f in / /usr /etc /open /home; do touch $f/made 2>/dev/null && echo $f; done; (: >> /open/file) 2>/dev/null && echo written; rm -f /open/file 2>/dev/null; ls /open',
        ),
      ).to.equal('file\n');
    }
    const found = await under.sh(
      one,
      'find / -path /proc -prune -o -path /dev/pts -prune -o ! -type l -writable -print 2>/dev/null',
    );
    expect(found.trim().split('\n')).to.have.members([
      '/run',
      '/tmp',
      '/dev/shm',
      '/home/sandbox',
      '/dev/null',
      '/dev/zero',
      '/dev/full',
      '/dev/random',
      '/dev/urandom',
      '/dev/tty',
    ]);
    const root = join(folders.unpacked, digest.replace(':', '-'), 'root');
    expect(
      readdirSync(folders.unpacked).filter((name) => name === digest.replace(':', '-')),
    ).to.have.lengthOf(1);
    expect(lstatSync(join(root, 'open')).mode & 0o7777).to.equal(0o755);
    expect(lstatSync(join(root, 'open/file')).mode & 0o7777).to.equal(0o644);
    expect(lstatSync(join(root, 'suid')).mode & 0o7777).to.equal(0o755);
    if (process.getuid?.() !== 0)
      skipBecause(this, 'only root gives sandboxes host uids of their own');
    expect(lstatSync(join(root, 'open')).uid).to.equal(0);
    expect(under.noteOf(one).uid).to.not.equal(under.noteOf(two).uid);
  });

  it('do not mount at the target of a link in the image', async () => {
    const target = join(folders.sources, 'outside');
    mkdirSync(target);
    chmodSync(target, 0o777);
    await layered('links', [
      [{ name: '.wh.etc' }, { name: '.wh.tmp' }],
      [
        { name: 'etc', type: 'symlink', linkname: '/' },
        { name: 'tmp', type: 'symlink', linkname: '/root' },
        { name: 'home', type: 'symlink', linkname: target },
        { name: 'proc', type: 'symlink', linkname: '/usr' },
        { name: 'dev', type: 'symlink', linkname: `/oldroot${target}` },
        { name: 'work', type: 'symlink', linkname: `/oldroot${target}` },
        { name: 'var', type: 'symlink', linkname: `/newroot/../oldroot${target}` },
      ],
    ]);
    const id = await started('oci:links', { command: ['sleep', 'infinity'], workingDir: '/' });
    expect(
      await under.sh(
        id,
        'ls -d /etc/passwd /tmp /home/sandbox; [ -L /etc ] || [ -L /tmp ] || [ -L /dev ] || echo folders; touch /tmp/a /home/sandbox/b && echo ok',
      ),
    ).to.include('folders\nok\n');
    await failed('oci:links', { command: ['sleep', 'infinity'], workingDir: '/work/made' });
    await failed('oci:links', { command: ['sleep', 'infinity'], workingDir: '/./var/made' });
    expect(readdirSync(target)).to.deep.equal([]);
  });

  it('use a folder as an image in place', async () => {
    const folder = join(folders.sources, 'tree');
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    execFileSync('tar', ['-x', '-C', folder], { input: programs });
    writeFileSync(join(folder, 'hello'), 'from the folder');
    mkdirSync(join(folder, 'home/someone'), { recursive: true });
    symlinkSync('/etc/shadow', join(folder, 'etc/passwd'));
    writeFileSync(join(folder, 'etc/hosts'), 'its own');
    const id = await started('dir:tree');
    expect(await under.sh(id, 'cat /hello; ls /home; id -u; cat /etc/hosts')).to.equal(
      'from the foldersandbox\nsomeone\nuser\n1000\n127.0.0.1 localhost sandbox\n::1 localhost\n',
    );
    expect(await under.sh(id, 'cat /etc/passwd 2>&1')).to.not.include('root:');
    expect(existsSync(join(folder, 'proc'))).to.equal(false);
    writeFileSync(join(folder, 'hello'), 'changed');
    expect(await under.sh(id, 'cat /hello')).to.equal('changed');
  });

  it('fail to start, with the reason, if the image is missing or broken', async () => {
    expect(await failed('oci:absent')).to.equal('image oci:absent: the image does not exist');
    await layered('broken', []);
    writeLayout(join(folders.sources, 'broken'), {
      layers: [{ bytes: Buffer.from('no archive') }],
    });
    expect(await failed('oci:broken')).to.match(
      /^image oci:broken: layer 1: it is not a tar archive/,
    );
    expect(await failed('oci:layers:absent')).to.equal(
      'image oci:layers:absent: the layout contains no image absent; it has "latest"',
    );
    await layered('silent', []);
    expect(await failed('oci:silent', {})).to.equal(
      'neither the template nor the image names a command',
    );
  });

  it('can end while their image is being unpacked', async () => {
    await layered('slow', []);
    const slow = await anImageDriver(folders, { unpackerCommand: ['/bin/sleep', '60'] });
    const order = anOrder(anImageDefinition('oci:slow'));
    const launched = slow.driver.launch(order, permitted);
    await slow.log.when(order.record.id, 'starting');
    const fact = await slow.driver.read(order.record.id);
    await slow.driver.retire(order.record.id, fact.record?.revision ?? '');
    expect((await slow.log.when(order.record.id, 'gone')).record).to.equal(undefined);
    await slow.close();
    expect((await launched).id).to.equal(order.record.id);
  });

  it('do not see the paths of images', async () => {
    writeLayout(join(folders.sources, 'holes'), { layers: [{ bytes: Buffer.alloc(0), size: 5 }] });
    for (const image of ['oci:holes', 'dir:absent', 'oci:absent'])
      expect(await failed(image)).to.not.include(folders.sources);
  });

  it('refuse a folder that is closed to others, under a root daemon', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'without root sandboxes have our own uid');
    mkdirSync(join(folders.sources, 'closed'), { mode: 0o700 });
    expect(await failed('dir:closed')).to.include('not accessible to all users');
    expect(statSync(join(folders.sources, 'closed')).mode & 0o777).to.equal(0o700);
  });
});

import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Images, ImageUnusable, type ImagesOptions } from '../../../src/embedded/images/images.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import {
  imageFolders,
  unpackerCommand,
  type ImageFolders,
} from '../../support/harness/an-image-driver.ts';
import { gzipLayer, tarOf, writeLayout } from '../../support/builders/an-oci-layout.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';

describe('the images of a machine', function () {
  let folders: ImageFolders;
  const open: Images[] = [];

  beforeEach(() => {
    folders = imageFolders();
  });
  afterEach(async () => {
    for (const images of open.splice(0)) await images.stop();
    folders.remove();
  });

  const imagesOf = async (part: Partial<ImagesOptions> = {}): Promise<Images> => {
    const images = new Images({
      directories: [folders.sources],
      folder: folders.unpacked,
      maxBytes: 2 ** 28,
      unusedAfterMs: 3_600_000,
      bwrapPath: '/usr/bin/bwrap',
      unpackerCommand: unpackerCommand(),
      clock: systemClock(),
      log: quietLog,
      ...part,
    });
    open.push(images);
    await images.start();
    return images;
  };
  const layout = async (name: string, content = name, config: unknown = {}): Promise<string> =>
    writeLayout(join(folders.sources, name), {
      layers: [gzipLayer(await tarOf([{ name: 'file', content }]))],
      config,
    }).replace(':', '-');
  const reasonOf = async (work: Promise<unknown>): Promise<string> => {
    const error = await rejection(work);
    expect(error, String(error)).to.be.instanceOf(ImageUnusable);
    return (error as Error).message;
  };
  const aged = (key: string): void => utimesSync(join(folders.unpacked, key), 1_000, 1_000);

  it('are listed as templates can name them', async () => {
    const images = await imagesOf();
    for (const image of [
      'host',
      'dir:a',
      'oci:python',
      'oci:python:3.12',
      `oci:python@sha256:${'0'.repeat(64)}`,
    ])
      expect(images.refusalOf(image), image).to.equal(undefined);
    for (const image of [
      '',
      'python',
      'docker://python',
      'dir:',
      'dir:/etc',
      'dir:..',
      'dir:a/b',
      'oci:../x',
      'oci:a:',
      'oci:a:b:c',
      'dir:a:b',
      'oci:.',
      `oci:a@sha512:${'0'.repeat(64)}`,
      'oci:a\n',
      ' host',
      'HOST',
    ]) {
      expect(images.refusalOf(image), image).to.include('must be host, dir:NAME, oci:NAME');
    }
    expect((await imagesOf({ directories: [] })).refusalOf('dir:a')).to.include(
      'images.directories',
    );
  });

  it('are unpacked once for simultaneous requests, and not again later', async () => {
    const key = await layout('one');
    const images = await imagesOf();
    const all = await Promise.all(Array.from({ length: 20 }, () => images.prepare('oci:one')));
    expect(new Set(all.map((image) => image.key))).to.deep.equal(new Set([key]));
    const { ino } = statSync(join(folders.unpacked, key, 'root'));
    expect((await images.prepare('oci:one:latest')).key).to.equal(key);
    const later = await imagesOf();
    expect((await later.prepare('oci:one')).key).to.equal(key);
    expect(statSync(join(folders.unpacked, key, 'root')).ino).to.equal(ino);
    expect(readdirSync(folders.unpacked)).to.deep.equal([key]);
  });

  it('are resolved again by tag if their layout has changed', async () => {
    const before = await layout('moving', 'before');
    const images = await imagesOf();
    expect((await images.prepare('oci:moving')).key).to.equal(before);
    const after = await layout('moving', 'after');
    expect((await images.prepare('oci:moving')).key).to.equal(after);
    expect(readdirSync(folders.unpacked)).to.have.members([before, after]);
  });

  it('are searched in each folder in turn', async () => {
    const key = await layout('found');
    const images = await imagesOf({
      directories: [join(folders.sources, 'absent'), folders.unpacked, folders.sources],
    });
    expect((await images.prepare('oci:found')).key).to.equal(key);
  });

  it('explain why they are unusable, and are retried only after a change', async () => {
    writeLayout(join(folders.sources, 'broken'), {
      layers: [{ bytes: Buffer.from('x'.repeat(512)) }],
    });
    const command = [...unpackerCommand()];
    const images = await imagesOf({ unpackerCommand: command });
    const reason = await reasonOf(images.prepare('oci:broken'));
    expect(reason).to.match(/^image oci:broken: layer 1: it is not a tar archive/);
    command[0] = '/bin/false'; // an unpacker that is started now says something else
    for (let i = 0; i < 50; i += 1)
      expect(await reasonOf(images.prepare('oci:broken'))).to.equal(reason);
    command[0] = unpackerCommand()[0] ?? '';
    const key = await layout('broken');
    expect((await images.prepare('oci:broken')).key).to.equal(key);
    expect(readdirSync(folders.unpacked)).to.deep.equal([key]);
  });

  it('that were half unpacked are removed at the start, and nothing else', async () => {
    const key = await layout('whole');
    await (await imagesOf()).prepare('oci:whole');
    mkdirSync(join(folders.unpacked, 'unfinished-x', 'root'), { recursive: true });
    writeFileSync(join(folders.unpacked, 'unfinished-x', 'root', 'file'), 'x');
    await imagesOf();
    expect(readdirSync(folders.unpacked)).to.deep.equal([key]);
  });

  it('leave nothing behind if the daemon stops while one is unpacked', async () => {
    await layout('any');
    // It stands still once it has told how far it is.
    const halt = `const { write } = process.stdout;
      process.stdout.write = (...given) => {
        write.apply(process.stdout, given);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      };`;
    const halted = ['--import', `data:text/javascript,${encodeURIComponent(halt)}`];
    const command = unpackerCommand().toSpliced(-1, 0, ...halted);
    const images = await imagesOf({ unpackerCommand: command });
    const work = images.prepare('oci:any').then(
      () => undefined,
      (error: unknown) => error,
    );
    while (readdirSync(folders.unpacked).length === 0)
      await new Promise((resolve) => setImmediate(resolve));
    await images.stop();
    expect(await work).to.be.instanceOf(Error);
    await imagesOf();
    expect(readdirSync(folders.unpacked)).to.deep.equal([]);
  });

  const children = (): string => readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');

  it('leave no process behind if the daemon stops while one is flushed to disk', async () => {
    const before = children();
    await layout('any');
    const ready = { type: 'ready', unpacked: true, image: { key: 'any' } };
    const script = `console.log(${JSON.stringify(JSON.stringify(ready))}); setInterval(() => {}, 1e6)`;
    const images = await imagesOf({ unpackerCommand: [process.execPath, '-e', script] });
    expect((await images.prepare('oci:any')).key).to.equal('any');
    expect(children()).to.not.equal(before);
    await images.stop();
    expect(children()).to.equal(before);
  });

  it('are no longer removed once the daemon stops, even during its start', async () => {
    const before = children();
    mkdirSync(join(folders.unpacked, 'unfinished-x'));
    const programs = join(folders.sources, 'programs');
    mkdirSync(programs);
    writeFileSync(join(programs, 'rm'), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
    const { PATH = '' } = process.env;
    process.env['PATH'] = `${programs}:${PATH}`;
    const starting = imagesOf();
    try {
      await eventually(() => children() !== before, 'it is being removed');
    } finally {
      process.env['PATH'] = PATH;
    }
    await open[0]?.stop();
    expect(children()).to.equal(before);
    await starting;
  });

  it('are removed if long unused, but not if a sandbox or template uses them', async () => {
    const keys = {
      unused: await layout('unused'),
      held: await layout('held'),
      expected: await layout('expected'),
      recent: await layout('recent'),
    };
    const before = await imagesOf();
    for (const name of Object.keys(keys)) await before.prepare(`oci:${name}`);
    await before.stop();
    for (const key of [keys.unused, keys.held, keys.expected]) aged(key);
    const images = new Images({
      directories: [folders.sources],
      folder: folders.unpacked,
      maxBytes: 2 ** 28,
      unusedAfterMs: 3_600_000,
      bwrapPath: '/usr/bin/bwrap',
      unpackerCommand: unpackerCommand(),
      clock: systemClock(),
      log: quietLog,
    });
    open.push(images);
    images.hold(keys.held);
    images.expect('oci:expected');
    images.release((await images.prepare('oci:expected')).key);
    aged(keys.expected);
    await images.start();
    expect(readdirSync(folders.unpacked)).to.have.members([keys.held, keys.expected, keys.recent]);
    images.release(keys.held);
  });

  it('cannot be in a folder that sandboxes cannot reach', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'without root sandboxes have our own uid');
    const closed = join(folders.sources, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    const error = await rejection(imagesOf({ folder: join(closed, 'unpacked') }));
    expect((error as Error).message)
      .to.include(closed)
      .and.include('not accessible to sandboxes');
  });

  it('are unpacked again after a removal', async () => {
    const key = await layout('back');
    const images = await imagesOf();
    images.release((await images.prepare('oci:back')).key);
    for (const again of [images, await imagesOf()]) {
      await eventually(() => existsSync(join(folders.unpacked, key, 'durable')), 'it is durable');
      rmSync(join(folders.unpacked, key), { recursive: true, maxRetries: 10, retryDelay: 20 });
      expect((await again.prepare('oci:back')).key).to.equal(key);
      expect(existsSync(join(folders.unpacked, key, 'root/file'))).to.equal(true);
    }
  });

  it('from before a reboot are trusted only if they were flushed to disk', async () => {
    const key = await layout('spoilt');
    const unpackedAt = async (): Promise<number> => {
      const images = await imagesOf();
      images.release((await images.prepare('oci:spoilt')).key);
      await eventually(() => existsSync(join(folders.unpacked, key, 'durable')), 'it is durable');
      // else it might say once more that it is, when the test has taken that away
      await images.stop();
      return statSync(join(folders.unpacked, key, 'root')).ino;
    };
    const first = await unpackedAt();
    const facts = join(folders.unpacked, key, 'image.json');
    const written = readFileSync(facts, 'utf8');
    writeFileSync(facts, written.replace(/"bootId":"[^"]*"/, '"bootId":"another"'));
    expect(await unpackedAt()).to.equal(first);
    for (const spoil of [() => {}, () => writeFileSync(facts, ''), () => rmSync(facts)]) {
      const before = statSync(join(folders.unpacked, key, 'root')).ino;
      writeFileSync(facts, written.replace(/"bootId":"[^"]*"/, '"bootId":"another"'));
      rmSync(join(folders.unpacked, key, 'durable'));
      spoil();
      writeFileSync(join(folders.unpacked, key, 'root/file'), '');
      await unpackedAt();
      expect(
        readFileSync(join(folders.unpacked, key, 'root/file'), 'utf8'),
        String(before),
      ).to.equal('spoilt');
    }
  });

  it('are unpacked a few at a time', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const name of names) await layout(name);
    const images = await imagesOf();
    const results = await Promise.allSettled(names.map((name) => images.prepare(`oci:${name}`)));
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.lengthOf(4);
    expect(await images.prepare('oci:f').then(({ key }) => key)).to.be.a('string');
  });

  it('are unpacked by a process that cannot write elsewhere', async () => {
    const outside = join(folders.sources, 'written');
    const script = `try { require('fs').writeFileSync(${JSON.stringify(outside)}, 'x') } catch (error) { process.stdout.write(JSON.stringify({ type: 'failed', reason: error.code, detail: '' }) + '\\n') }`;
    const images = await imagesOf({ unpackerCommand: [process.execPath, '-e', script] });
    await layout('any');
    expect(await reasonOf(images.prepare('oci:any'))).to.equal('image oci:any: EROFS');
    expect(existsSync(outside)).to.equal(false);
  });

  it('survive an unpacker that dies, disconnects or sends garbage', async () => {
    await layout('any');
    for (const script of [
      'process.exit(3)',
      'console.log("nonsense")',
      'process.kill(process.pid, "SIGKILL")',
      'process.stdout.write("{}\\n")',
    ]) {
      const images = await imagesOf({ unpackerCommand: [process.execPath, '-e', script] });
      expect(await reasonOf(images.prepare('oci:any')), script).to.equal(
        'image oci:any: it could not be unpacked',
      );
    }
  });
});

import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import { ImageRefused } from '../../../src/embedded/images/unpacker/image-refused.ts';
import { prepareImage } from '../../../src/embedded/images/unpacker/prepare-image.ts';
import {
  digestOf,
  gzipLayer,
  plainLayer,
  TAR,
  tarOf,
  writeLayout,
  type LayoutLayer,
  type LayoutParts,
  type TarEntry,
} from '../../support/builders/an-oci-layout.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { runs } from '../../support/harness/runs.ts';

describe('layers of an image', function () {
  let folder: string;
  let images: string;
  let count = 0;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-layers-'));
    images = join(folder, 'images');
    mkdirSync(images);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const prepare = async (parts: LayoutParts, maxBytes = 2 ** 28): Promise<string> => {
    const layout = join(folder, `layout-${count++}`);
    writeLayout(layout, parts);
    const { image } = await prepareImage(
      {
        kind: 'oci',
        source: layout,
        folder: images,
        staging: join(images, `unfinished-${count}`),
        maxBytes,
      },
      () => {},
    );
    return join(images, image.key, 'root');
  };
  const unpack = async (...layers: readonly (readonly TarEntry[])[]): Promise<string> =>
    prepare({
      layers: await Promise.all(layers.map(async (entries) => plainLayer(await tarOf(entries)))),
    });
  /** Why it is refused; nothing of it is left. */
  const refusal = async (work: Promise<unknown>): Promise<string> => {
    const error = await rejection(work);
    expect(error, String(error)).to.be.instanceOf(ImageRefused);
    expect(readdirSync(images)).to.deep.equal([]);
    return (error as Error).message;
  };
  const refused = async (...layers: readonly (readonly TarEntry[])[]): Promise<string> =>
    refusal(unpack(...layers));
  const treeOf = (root: string): readonly string[] =>
    readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();

  it('become one tree, with upper layers over lower ones', async () => {
    const root = await unpack(
      [
        { name: 'a', content: 'lower' },
        { name: 'folder/b', content: 'b' },
        { name: 'becomes-folder', content: 'x' },
        { name: 'becomes-file/x', content: 'x' },
      ],
      [
        { name: './a', content: 'upper' },
        { name: 'becomes-folder/', type: 'directory' },
        { name: 'becomes-folder/c', content: 'c' },
        { name: 'becomes-file', content: 'y' },
      ],
    );
    expect(treeOf(root)).to.deep.equal([
      'a',
      'becomes-file',
      'becomes-folder',
      'becomes-folder/c',
      'folder',
      'folder/b',
    ]);
    expect(readFileSync(join(root, 'a'), 'utf8')).to.equal('upper');
  });

  it('hide files of lower layers by whiteouts, and none of their own', async () => {
    const root = await unpack(
      [
        { name: 'd/one', content: '1' },
        { name: 'd/two', content: '2' },
        { name: 'd/sub/three', content: '3' },
        { name: 'gone/x', content: 'x' },
      ],
      [
        { name: 'd/four', content: '4' },
        { name: 'd/.wh.four' },
        { name: 'd/sub/new', content: 'n' },
        { name: 'd/.wh..wh..opq' },
        { name: '.wh.gone' },
        { name: '.wh.never-was' },
        { name: 'd/.wh..wh.plnk' },
      ],
    );
    expect(treeOf(root)).to.deep.equal(['d', 'd/four', 'd/sub', 'd/sub/new']);
  });

  it('keep links, modes without special bits, times, and hard links', async () => {
    const root = await unpack([
      { name: 'tool', content: '#!', mode: 0o4711, mtime: new Date(1_600_000_000_000) },
      { name: 'closed', content: 's', mode: 0o200 },
      { name: 'again', type: 'link', linkname: 'tool' },
      { name: 'in/abs', type: 'symlink', linkname: '/etc/x' },
      { name: 'in/rel', type: 'symlink', linkname: '../tool' },
    ]);
    const tool = lstatSync(join(root, 'tool'));
    expect([tool.mode & 0o7777, tool.mtimeMs, tool.nlink]).to.deep.equal([
      0o755, 1_600_000_000_000, 2,
    ]);
    expect(lstatSync(join(root, 'closed')).mode & 0o7777).to.equal(0o644);
    expect(lstatSync(join(root, 'again')).ino).to.equal(tool.ino);
    expect([readlinkSync(join(root, 'in/abs')), readlinkSync(join(root, 'in/rel'))]).to.deep.equal([
      '/etc/x',
      '../tool',
    ]);
  });

  it('can repeat a name, with the last one in effect, and distinguish case', async () => {
    const root = await unpack([
      { name: 'a', content: 'first' },
      { name: 'a', content: 'last' },
      { name: 'A', content: 'big' },
      { name: 'd', type: 'directory' },
      { name: 'd/x', content: '' },
      { name: 'd', type: 'directory' },
    ]);
    expect(treeOf(root)).to.deep.equal(['A', 'a', 'd', 'd/x']);
    expect(readFileSync(join(root, 'a'), 'utf8')).to.equal('last');
  });

  for (const [what, entry, reason] of [
    ['an absolute name', { name: '/etc/passwd', content: 'x' }, 'absolute name'],
    ['a name with ..', { name: 'a/../../x', content: 'x' }, 'name with ..'],
    ['a hard link out', { name: 'x', type: 'link', linkname: '../../etc/shadow' }, 'name with ..'],
    [
      'an absolute hard link',
      { name: 'x', type: 'link', linkname: '/etc/shadow' },
      'absolute name',
    ],
    [
      'a hard link to nothing',
      { name: 'x', type: 'link', linkname: 'etc/shadow' },
      'leads to no file of the image',
    ],
    [
      'a hard link that names nothing',
      { name: 'x', type: 'link', linkname: '' },
      'the target of the hard link "x" has no name',
    ],
    ['a link that names nothing', { name: 'x', type: 'symlink', linkname: '' }, 'has no target'],
    [
      'a link that climbs out',
      { name: 'a/x', type: 'symlink', linkname: '../../etc' },
      'leads out of the image',
    ],
    [
      'a link that climbs out on a detour',
      { name: 'x', type: 'symlink', linkname: '/usr/../../etc' },
      'leads out of the image',
    ],
    [
      'a character device',
      { name: 'dev/mem', type: 'character-device', devmajor: 1, devminor: 1 },
      'is a device',
    ],
    ['a block device', { name: 'dev/sda', type: 'block-device', devmajor: 8 }, 'is a device'],
    ['a named pipe', { name: 'pipe', type: 'fifo' }, 'named pipe'],
    ['a whiteout of ..', { name: 'a/.wh...' }, 'is a whiteout of an invalid name'],
    ['a whiteout of nothing', { name: 'a/.wh.' }, 'is a whiteout of an invalid name'],
    [
      'a sparse file',
      {
        name: 's',
        content: '',
        pax: { 'GNU.sparse.major': '1', 'GNU.sparse.realsize': '1099511627776' },
      },
      'sparse',
    ],
    ['an invalid size', { name: 's', content: 'x', pax: { size: '1e3' } }, 'an invalid size'],
    [
      'a negative size',
      { name: 's', content: 'x', pax: { size: '-1' } },
      /not a tar archive|an invalid size/,
    ],
    ['a long name', { name: 'n'.repeat(256), content: '' }, 'more than 255 bytes'],
    [
      'a long path',
      { name: Array.from({ length: 20 }, () => 'n'.repeat(200)).join('/'), content: '' },
      'more than 3072 bytes',
    ],
    ['a deep path', { name: 'd/'.repeat(129), type: 'directory' }, 'more than 128 folders deep'],
    [
      'a long target',
      { name: 'l', type: 'symlink', linkname: 'x/'.repeat(2_048) },
      'more than 4095 bytes',
    ],
    [
      'a root that is a file',
      { name: './', type: 'symlink', linkname: 'x' },
      'the root of the image is not a folder',
    ],
  ] as const) {
    it(`with ${what} are refused`, async () => {
      expect(await refused([{ name: 'ok', content: 'ok' }, entry as TarEntry])).to.match(
        typeof reason === 'string'
          ? new RegExp(`^layer 1: .*${reason.replaceAll('.', '\\.')}`)
          : reason,
      );
    });
  }

  it('that write through a link of any layer are refused', async () => {
    symlinkSync(folder, join(folder, 'elsewhere'));
    const link: TarEntry = { name: 'out', type: 'symlink', linkname: folder };
    expect(await refused([link, { name: 'out/owned', content: 'x' }])).to.include(
      'goes through "out", which is a link',
    );
    expect(await refused([link], [{ name: 'out/owned', content: 'x' }])).to.include(
      'layer 2: "out/owned" goes through "out"',
    );
    expect(
      await refused([
        { name: 'f', content: '' },
        { name: 'f/below', content: 'x' },
      ]),
    ).to.include('which is a file');
    expect(
      await refused([link, { name: 'x', type: 'link', linkname: 'out/layout-0/index.json' }]),
    ).to.include('goes through "out"');
    expect(existsSync(join(folder, 'owned'))).to.equal(false);
    // Once it is a folder, its content is the image's own.
    expect(
      treeOf(
        await unpack(
          [link],
          [
            { name: 'out', type: 'directory' },
            { name: 'out/owned', content: 'x' },
          ],
        ),
      ),
    ).to.deep.equal(['out', 'out/owned']);
  });

  it('that hide files through a link hide nothing elsewhere', async () => {
    writeFileSync(join(folder, 'precious'), 'x');
    await unpack(
      [{ name: 'out', type: 'symlink', linkname: folder }],
      [{ name: 'out/.wh.precious' }, { name: 'out/.wh..wh..opq' }],
    ).catch(() => undefined);
    expect(existsSync(join(folder, 'precious'))).to.equal(true);
  });

  it('are refused if blob, size or digests do not match', async () => {
    const archive = await tarOf([{ name: 'a', content: 'a' }]);
    const of = (layer: LayoutLayer): Promise<string> => refusal(prepare({ layers: [layer] }));
    expect(await of({ bytes: archive, digest: digestOf(Buffer.from('other')) })).to.include(
      'does not match its digest',
    );
    expect(await of({ bytes: archive, diffId: digestOf(Buffer.from('other')) })).to.include(
      'its archive does not match its digest in the configuration',
    );
    expect(await of({ bytes: archive, size: archive.length + 1 })).to.include(
      `its blob has ${archive.length} bytes instead of ${archive.length + 1}`,
    );
    expect(
      await of({ ...gzipLayer(archive), bytes: gzipSync(archive).subarray(0, -20) }),
    ).to.include('it is not gzip, or ends too early');
    expect(await of({ ...gzipLayer(archive), bytes: archive })).to.include(
      'it is not gzip, or ends too early',
    );
    expect(await of({ ...gzipLayer(archive), mediaType: `${TAR}+zstd` })).to.include(
      'it is not zstd, or ends too early',
    );
    expect(await of({ bytes: archive.subarray(0, 700) })).to.include('it is not a tar archive');
    expect(await of({ bytes: Buffer.from('x'.repeat(2_048)) })).to.include(
      'it is not a tar archive',
    );
    expect(
      await of({
        bytes: archive,
        mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
      }),
    ).to.include('is not supported');
  });

  it('that are bombs are refused before they are unpacked', async () => {
    const zeros = Buffer.alloc(2 ** 22);
    const archive = await tarOf([{ name: 'zeros', content: zeros }]);
    expect(await refusal(prepare({ layers: [gzipLayer(archive)] }, 2 ** 21))).to.equal(
      `layer 1: unpacked, it has more than ${2 ** 21} bytes`,
    );
    expect(
      await refusal(
        prepare({ layers: [gzipLayer(archive), gzipLayer(archive)] }, 2 ** 22 + 2 ** 20),
      ),
    ).to.equal(`layer 2: unpacked, it has more than ${2 ** 22 + 2 ** 20} bytes`);
    // Nothing but the end of an archive, again and again. It is refused before its digest is seen.
    const packed = gzipSync(Buffer.alloc(1 << 20));
    const endless = Buffer.concat(Array.from({ length: 258 }, () => packed));
    const layer = { ...gzipLayer(archive), bytes: endless };
    expect(await refusal(prepare({ layers: [layer] }, 2 ** 40))).to.equal(
      'layer 1: unpacked, it is more than 250 times as large as packed',
    );
    expect(
      await refusal(prepare({ layers: [gzipLayer(Buffer.alloc(2 ** 23))] }, 2 ** 22)),
    ).to.include('more than');
  });

  it('with a too large extended header are refused', async () => {
    const archive = await tarOf([
      { name: 'a', content: '', pax: { comment: 'x'.repeat(5 << 20) } },
    ]);
    expect(await refusal(prepare({ layers: [gzipLayer(archive)] }))).to.include(
      'it is not a tar archive',
    );
  });

  it('stay in their folder with any content, or are refused with a reason', async () => {
    const name = fc
      .array(fc.constantFrom('a', 'b', '..', '.', '', '.wh.a', '.wh..wh..opq', '.wh..', 'c'), {
        minLength: 1,
        maxLength: 4,
      })
      .map((parts) => parts.join('/'));
    const entry = fc.record({
      name: name.filter((text) => text !== ''),
      type: fc.constantFrom(
        'file' as const,
        'directory' as const,
        'symlink' as const,
        'link' as const,
      ),
      linkname: fc.oneof(name, fc.constant('/etc/passwd'), fc.constant(tmpdir())),
      content: fc.constantFrom('', 'content'),
    });
    const before = readdirSync(folder).length;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(entry, { maxLength: 6 }), { minLength: 1, maxLength: 3 }),
        async (layers) => {
          const error = await unpack(
            ...layers.map((entries) =>
              entries.map(({ type, linkname, content, name: its }): TarEntry =>
                type === 'file' ? { name: its, type, content } : { name: its, type, linkname },
              ),
            ),
          ).then(
            () => undefined,
            (cause: unknown) => cause,
          );
          if (error !== undefined) expect(error).to.be.instanceOf(ImageRefused);
          expect(
            readdirSync(images).filter((found) => found.startsWith('unfinished-')),
          ).to.deep.equal([]);
        },
      ),
      { numRuns: runs(20) },
    );
    expect(readdirSync(folder).filter((found) => !found.startsWith('layout-')).length).to.equal(
      before,
    );
  });

  it('with random changes are refused or unpack unchanged', async () => {
    const archive = await tarOf([
      { name: 'a', content: 'some content' },
      { name: 'd/b', content: 'x' },
      { name: 'l', type: 'symlink', linkname: 'a' },
    ]);
    await fc.assert(
      fc.asyncProperty(fc.nat(archive.length - 1), fc.nat(255), async (at, value) => {
        const changed = Buffer.from(archive);
        changed[at] = value;
        const error = await prepare({ layers: [plainLayer(changed)] }).then(
          () => undefined,
          (cause: unknown) => cause,
        );
        if (error !== undefined) expect(error).to.be.instanceOf(ImageRefused);
      }),
      { numRuns: runs(20) },
    );
  });
});

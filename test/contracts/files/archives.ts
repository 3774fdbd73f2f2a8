import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { extract, type Header } from 'tar-stream';
import type { WrittenTree } from '../../../src/contracts/files.ts';
import { tarOf, type TarEntry } from '../../support/builders/an-oci-layout.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';
import { never, problemOf, type Place } from './place.ts';

export const archives = (begin: () => Promise<Place>): void => {
  it('reads a whole folder as an archive', async () => {
    const place = await begin();
    const long = 'n'.repeat(180);
    await place.under.sh(
      `cd ${place.under.folder}; mkdir -p tree/a/b; printf one >tree/a/1; chmod 600 tree/a/1; ln -s a/1 tree/link; mkfifo tree/fifo; head -c 300000 /dev/zero >tree/a/b/large; printf x >tree/a/${long}`,
    );

    const archive = await buffer(await place.files.readTree(place.at('tree'), never));

    const found = await entriesOf(archive);
    expect([...found.keys()].sort()).to.deep.equal(
      ['./', './a/', './a/1', './a/b/', './a/b/large', `./a/${long}`, './link'].sort(),
    );
    expect(found.get('./a/1')?.header).to.include({ mode: 0o600, size: 3 });
    expect(String(found.get('./a/1')?.content)).to.equal('one');
    expect(found.get('./a/b/large')?.content.equals(Buffer.alloc(300_000))).to.equal(true);
    expect(found.get('./link')?.header).to.include({ type: 'symlink', linkname: 'a/1' });
  });

  it('creates a folder from an archive, and the same archive from the folder', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; mkdir -p tree/a/b; echo one >tree/a/1; chmod 755 tree/a/1; ln -s nowhere tree/a/b/link; head -c 2000000 /dev/urandom >tree/large`,
    );
    const first = await buffer(await place.files.readTree(place.at('tree'), never));

    const { entries } = await unpack(place, 'copy/of/it', Readable.from([first]));
    const second = await buffer(await place.files.readTree(place.at('copy/of/it'), never));

    expect(entries).to.equal(5);
    const shown = (folder: string): Promise<string> =>
      place.under.sh(
        `cd ${place.under.folder}/${folder} && find . | sort && find . -type f | sort | xargs md5sum && find . -type f | sort | xargs stat -c '%a %Y' && readlink a/b/link`,
      );
    expect(await shown('copy/of/it')).to.equal(await shown('tree'));
    expect(await shown('tree')).to.include('nowhere');
    expect([...(await entriesOf(second)).keys()]).to.deep.equal([
      ...(await entriesOf(first)).keys(),
    ]);
  });

  it('unpacks files, folders, links and hard links over existing ones', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; mkdir -p to/a; chmod 750 to/a; echo old >to/a/file; echo kept >to/a/kept`,
    );

    await unpacked(place, [
      { name: 'a', type: 'directory', mode: 0o700 },
      { name: './a/file', content: 'new' },
      { name: 'a/hard', type: 'link', linkname: 'a/file' },
      { name: 'soft', type: 'symlink', linkname: '/anywhere' },
      { name: 'made/above/it', content: 'x', mode: 0o755 },
    ]);

    const shown = `cd ${place.under.folder}/to; cat a/hard; readlink soft; stat -c %a made/above/it a; [ a/file -ef a/hard ] && echo one; cat a/kept`;
    expect(await place.under.sh(shown)).to.equal('new/anywhere\n755\n750\none\nkept\n');
  });

  const hostile: readonly { readonly what: string; readonly entries: readonly TarEntry[] }[] = [
    { what: 'an absolute name', entries: [{ name: '/etc/evil', content: 'x' }] },
    { what: 'a name that leads out', entries: [{ name: 'a/../../evil', content: 'x' }] },
    {
      what: 'a path through a link that it made',
      entries: [
        { name: 'way', type: 'symlink', linkname: '..' },
        { name: 'way/evil', content: 'x' },
      ],
    },
    {
      what: 'a folder through a link that it made',
      entries: [
        { name: 'way', type: 'symlink', linkname: '..' },
        { name: 'way', type: 'directory' },
        { name: 'way/evil', content: 'x' },
      ],
    },
    {
      what: 'a hard link out',
      entries: [{ name: 'hard', type: 'link', linkname: '../outside' }],
    },
    {
      what: 'a hard link through a link',
      entries: [
        { name: 'way', type: 'symlink', linkname: '..' },
        { name: 'hard', type: 'link', linkname: 'way/outside' },
      ],
    },
    {
      what: 'an absolute hard link',
      entries: [{ name: 'hard', type: 'link', linkname: '/etc/passwd' }],
    },
    {
      what: 'a device',
      entries: [{ name: 'null', type: 'character-device', devmajor: 1, devminor: 3 }],
    },
    { what: 'a fifo', entries: [{ name: 'fifo', type: 'fifo' }] },
  ];
  for (const { what, entries } of hostile)
    it(`refuses an archive with ${what}, and writes nothing outside`, async () => {
      const place = await begin();
      await place.put('outside', 'secret');
      const before = await place.under.sh(`cd ${place.under.folder}; ls -A; cat outside`);

      const good: TarEntry = { name: 'good', content: 'x' };
      expect(await problemOf(unpacked(place, [good, ...entries]))).to.equal('bad-archive');

      const after = await place.under.sh(
        `cd ${place.under.folder}; ls -A | grep -v ^to; cat outside`,
      );
      expect(after).to.equal(before);
      expect(await place.list('to')).not.to.include.members(['hard', 'null', 'fifo']);
      expect(String(await place.get('to/good'))).to.equal('x');
    });

  it('follows no link of the sandbox, and replaces no folder by a file', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; mkdir -p out to/folder/in; ln -s ../out to/way; echo old >to/file`,
    );
    const cases: readonly (readonly [TarEntry, string])[] = [
      [{ name: 'way/evil', content: 'x' }, 'bad-archive'],
      [{ name: 'way', type: 'directory' }, 'bad-archive'],
      [{ name: 'file/below', content: 'x' }, 'bad-archive'],
      [{ name: 'folder', content: 'x' }, 'is-a-folder'],
    ];

    for (const [number, [entry, problem]] of cases.entries()) {
      const call = unpacked(place, [{ name: `good${number}`, content: 'x' }, entry]);
      expect(await problemOf(call), entry.name).to.equal(problem);
    }

    const shown = `cd ${place.under.folder}; ls -A out; ls -A to; readlink to/way; cat to/file`;
    expect((await place.under.sh(shown)).split('\n')).to.deep.equal([
      'file',
      'folder',
      'good0',
      'good1',
      'good2',
      'good3',
      'way',
      '../out',
      'old',
      '',
    ]);
  });

  it('accepts long names, and names of any bytes', async () => {
    const place = await begin();
    const bytes = Buffer.concat([Buffer.from('tree/'), Buffer.from([0x66, 0xff, 0x0a, 0x2e])]);
    const long = `${'d'.repeat(120)}/${'e'.repeat(120)}`;
    await place.under.sh(`cd ${place.under.folder}; mkdir -p tree/${long}`);
    await place.put(bytes, 'bytes');
    await place.put(`tree/${long}/file`, 'long');
    await place.under.sh(`cd ${place.under.folder}; ln -s ${long}${long} tree/link`);

    await unpack(place, 'copy', await place.files.readTree(place.at('tree'), never));

    expect(await place.list('copy', { depth: 4 })).to.deep.equal(
      await place.list('tree', { depth: 4 }),
    );
    expect(String(await place.get(`copy/${long}/file`))).to.equal('long');
    const linked = await place.files.stat(place.at('copy/link'), never);
    expect(String(linked.target)).to.equal(long + long);
  });

  it('reports the refused entry', async () => {
    const place = await begin();

    const refused = await rejection(unpacked(place, [{ name: 'a/../../evil', content: 'x' }]));

    expect(refused.message).to.include('a/../../evil');
  });

  it('refuses a file that is not an archive, and a truncated archive', async () => {
    const place = await begin();
    const whole = await tarOf([{ name: 'file', content: Buffer.alloc(100_000) }]);
    const parts = [
      Buffer.from('no archive at all'),
      Buffer.alloc(2_000, 'x'),
      whole.subarray(0, 50_000),
    ];

    for (const bytes of parts)
      expect(await problemOf(unpack(place, 'to', Readable.from([bytes])))).to.equal('bad-archive');

    expect(await place.list('to')).to.deep.equal([]);
  });

  it('refuses an archive during the transfer, however much of it is left', async () => {
    const place = await begin();
    const bad = await tarOf([{ name: '../evil', content: 'x' }]);
    const endless = new Readable({
      read() {
        this.push(Buffer.alloc(64 << 10));
      },
    });
    endless.unshift(bad.subarray(0, 1_024));

    expect(await problemOf(unpack(place, 'to', endless))).to.equal('bad-archive');

    expect(endless.destroyed).to.equal(true);
  });

  it('reports that an archive does not fit, and leaves no partial file', async function () {
    const place = await begin();
    const { smallFolder } = place.under;
    if (smallFolder === undefined) return skipBecause(this, 'no small folder is at hand');
    const bytes = await tarOf([{ name: 'large', content: Buffer.alloc(72 << 20) }]);
    const archive = Readable.from([bytes], { objectMode: false });

    expect(await problemOf(unpack(place, `${smallFolder}/to`, archive))).to.equal('no-space');

    expect(archive.destroyed).to.equal(true);
    expect(await place.list(`${smallFolder}/to`)).to.deep.equal([]);
    expect(await place.under.sh(`ls -A ${smallFolder}/to; rm -r ${smallFolder}/to`)).to.equal('');
  });

  it('unpacks thousands of small files', async () => {
    const place = await begin();
    const many = Array.from({ length: 1_000 }, (_, number) => ({
      name: `d${number % 7}/f${number}`,
      content: String(number),
    }));

    const { entries } = await unpacked(place, many);

    expect(entries).to.equal(1_000);
    expect(await place.under.sh(`find ${place.under.folder}/to -type f | wc -l`)).to.match(
      /^1000\b/,
    );
    expect(String(await place.get('to/d6/f958'))).to.equal('958');
  });
};

const unpack = (place: Place, to: string, archive: Readable): Promise<WrittenTree> =>
  place.files.writeTree(place.at(to), archive, never);

const unpacked = async (place: Place, entries: readonly TarEntry[]): Promise<WrittenTree> =>
  await unpack(place, 'to', Readable.from([await tarOf(entries)]));

const entriesOf = async (
  archive: Buffer,
): Promise<Map<string, { readonly header: Header; readonly content: Buffer }>> => {
  const found = new Map<string, { readonly header: Header; readonly content: Buffer }>();
  const reader = Readable.from([archive]).pipe(extract());
  for await (const entry of reader)
    found.set(entry.header.name, { header: entry.header, content: await buffer(entry) });
  return found;
};

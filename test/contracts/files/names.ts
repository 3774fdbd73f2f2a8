import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { never, problemOf, type Place } from './place.ts';

export const names = (begin: () => Promise<Place>): void => {
  it('removes a file, a link and an empty folder', async () => {
    const place = await begin();
    await place.under.sh(`cd ${place.under.folder}; echo >kept; echo >a; ln -s kept b; mkdir c`);

    for (const name of ['a', 'b', 'c'])
      await place.files.remove(place.at(name), { recursive: false }, never);

    expect(await place.list('.')).to.deep.equal(['kept']);
    const again = place.files.remove(place.at('a'), { recursive: false }, never);
    expect(await problemOf(again)).to.equal('not-found');
  });

  it('removes the contents of a folder only if requested', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; mkdir -p out tree/a/b/c/d; echo >out/kept; ln -s ../out tree/link; for i in 1 2 3; do echo >tree/a/$i; echo >tree/a/b/$i; done`,
    );
    const remove = (recursive: boolean): Promise<void> =>
      place.files.remove(place.at('tree'), { recursive }, never);

    expect(await problemOf(remove(false))).to.equal('not-empty');
    await remove(true);

    expect(await place.list('.', { depth: 3 })).to.deep.equal(['out', 'out/kept']);
  });

  it('removes a tree deeper than any path', async () => {
    const place = await begin();
    await place.under.sh(
      `mkdir ${place.under.folder}/deep; cd ${place.under.folder}/deep; i=0; while [ $i -lt 420 ]; do mkdir dddddddddd; cd dddddddddd; i=$((i+1)); done`,
    );

    await place.files.remove(place.at('deep'), { recursive: true }, never);

    expect(await place.list('.')).to.deep.equal([]);
  });

  it('moves a file, and replaces another only if requested', async () => {
    const place = await begin();
    await place.put('from', 'moved');
    await place.put('to', 'there');
    const move = (overwrite: boolean): ReturnType<typeof place.files.move> =>
      place.files.move(place.at('from'), { to: place.at('to').path, overwrite }, never);

    expect(await problemOf(move(false))).to.equal('exists');
    expect(await move(true)).to.include({ kind: 'file', size: 5 });

    expect(await place.list('.')).to.deep.equal(['to']);
    expect(String(await place.get('to'))).to.equal('moved');
    expect(await problemOf(move(true))).to.equal('not-found');
  });

  it('changes nothing if a file is moved to itself', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; echo kept >a; ln a same; ln -s a link; mkdir folder`,
    );
    const before = await place.list('.');
    const move = (
      from: string,
      to: string,
      overwrite: boolean,
    ): ReturnType<typeof place.files.move> =>
      place.files.move(place.at(from), { to: place.at(to).path, overwrite }, never);

    for (const name of ['a', 'link', 'folder']) {
      await move(name, name, true);
      expect(await problemOf(move(name, name, false))).to.equal('exists');
    }
    await move('a', 'same', true);

    expect(await place.list('.')).to.deep.equal(before);
    expect(String(await place.get('link'))).to.equal('kept\n');
  });

  it('moves a file to another file system by a copy', async () => {
    const place = await begin();
    const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, at) => (at * 7) % 251));
    const metadata: Readonly<Record<string, string>> = place.under.keepsMetadata
      ? { colour: 'blue' }
      : {};
    await place.put('from', bytes, { mode: 0o640, metadata });
    const to = place.at(`/dev/shm/moved-${randomUUID()}`);
    const { mtimeNs } = await place.files.stat(place.at('from'), never);
    const move = (overwrite: boolean): ReturnType<typeof place.files.move> =>
      place.files.move(place.at('from'), { to: to.path, overwrite }, never);

    expect(await move(false)).to.deep.include({
      kind: 'file',
      mode: 0o640,
      size: 700_000,
      mtimeNs,
      metadata,
    });
    expect((await place.get(to.path)).equals(bytes)).to.equal(true);
    expect(await place.list('.')).to.deep.equal([]);
    await place.put('from', 'second');
    expect(await problemOf(move(false))).to.equal('exists');
    expect(await move(true)).to.include({ size: 6 });
    await place.files.mkdir(place.at('from'), { parents: false }, never);
    expect(await problemOf(move(true))).to.equal('cannot-move');
    await place.files.remove(to, { recursive: false }, never);
  });

  it('refuses to move a folder into itself', async () => {
    const place = await begin();
    await place.under.sh(`mkdir ${place.under.folder}/folder`);

    const moved = place.files.move(
      place.at('folder'),
      { to: place.at('folder/below').path, overwrite: false },
      never,
    );

    expect(await problemOf(moved)).to.equal('cannot-move');
  });

  it('creates folders, with parents only if requested', async () => {
    const place = await begin();
    const mkdir = (path: string, parents: boolean): ReturnType<typeof place.files.mkdir> =>
      place.files.mkdir(place.at(path), { mode: 0o750, parents }, never);

    const made = await mkdir('a', false);
    expect(made.created).to.equal(true);
    expect(made.stat).to.include({ kind: 'folder', mode: 0o750 });
    expect(await problemOf(mkdir('a', false))).to.equal('exists');
    expect(await problemOf(mkdir('x/y/z', false))).to.equal('not-found');
    expect((await mkdir('x/y/z', true)).created).to.equal(true);
    expect((await mkdir('x/y/z', true)).created).to.equal(false);
    await place.put('file', '');
    expect(await problemOf(mkdir('file', true))).to.equal('exists');
  });

  it('accepts names of any bytes', async () => {
    const place = await begin();
    const name = Buffer.from([0x66, 0xff, 0xfe, 0x0a, 0x2e]);

    await place.put(name, 'bytes');

    expect(await place.list('.')).to.deep.equal([name.toString('latin1')]);
    expect(String(await place.get(name))).to.equal('bytes');
    await place.files.move(place.at(name), { to: place.at('plain').path, overwrite: false }, never);
    expect(await place.list('.')).to.deep.equal(['plain']);
  });

  it('refuses impossible names and endless links', async () => {
    const place = await begin();
    await place.under.sh(`ln -s loop ${place.under.folder}/loop`);

    expect(await problemOf(place.put('n'.repeat(300), 'x'))).to.equal('bad-path');
    expect(await problemOf(place.get('loop'))).to.equal('bad-path');
    expect(await problemOf(place.put('loop', 'x'))).to.equal('bad-path');
  });
};

import { expect } from 'chai';
import { never, problemOf, type Place } from './place.ts';

export const listing = (begin: () => Promise<Place>): void => {
  it('lists the entries of a folder with their kinds', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; mkdir folder; echo >folder/below; printf abc >file; ln -s folder link; mkfifo fifo`,
    );

    const { entries, next } = await place.files.list(
      place.at('.'),
      { depth: 1, limit: 100 },
      never,
    );

    const shown = entries.map(({ path, stat }) => `${String(path)} ${stat.kind}`).sort();
    expect(shown).to.deep.equal(['fifo other', 'file file', 'folder folder', 'link link']);
    expect(entries.find(({ path }) => String(path) === 'file')?.stat.size).to.equal(3);
    expect(next).to.equal(undefined);
  });

  it('lists to the requested depth, and follows no link', async () => {
    const place = await begin();
    await place.under.sh(`cd ${place.under.folder}; mkdir -p a/b/c; echo >a/b/c/d; ln -s a link`);

    expect((await place.list('.', { depth: 2 })).sort()).to.deep.equal(['a', 'a/b', 'link']);
    expect((await place.list('.', { depth: 9 })).sort()).to.deep.equal([
      'a',
      'a/b',
      'a/b/c',
      'a/b/c/d',
      'link',
    ]);
  });

  it('returns every entry once, for any page size', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; for d in . x x/y z; do mkdir -p $d; for i in 1 2 3 4 5; do echo >$d/f$i; done; done`,
    );
    const all = (await place.list('.', { depth: 4 })).sort();

    expect(all).to.have.length(23);
    for (const limit of [1, 2, 3, 7, 22, 23])
      expect((await place.list('.', { depth: 4, limit })).sort(), `limit ${limit}`).to.deep.equal(
        all,
      );
  });

  it('resumes at its position even if the last entry is gone', async () => {
    const place = await begin();
    await place.under.sh(`cd ${place.under.folder}; for i in 1 2 3 4 5 6; do echo >f$i; done`);
    const page = { depth: 1, limit: 3 };
    const first = await place.files.list(place.at('.'), page, never);
    const given = first.entries.map(({ path }) => String(path));
    await place.files.remove(place.at(given.at(-1) ?? ''), { recursive: false }, never);

    const second = await place.files.list(
      place.at('.'),
      { ...page, cursor: first.next ?? '' },
      never,
    );

    const all = [...given, ...second.entries.map(({ path }) => String(path))].sort();
    expect(all).to.deep.equal(['f1', 'f2', 'f3', 'f4', 'f5', 'f6']);
  });

  it('refuses a foreign cursor, and a path that is not a folder', async () => {
    const place = await begin();
    await place.put('file', '');
    const list = (path: string, cursor?: string): Promise<unknown> =>
      place.files.list(place.at(path), { depth: 1, limit: 10, cursor }, never);

    expect(await problemOf(list('.', '§'))).to.equal('bad-cursor');
    expect(await problemOf(list('.', Buffer.from('../x').toString('base64url')))).to.equal(
      'bad-cursor',
    );
    expect(await problemOf(list('file'))).to.equal('not-a-folder');
    expect(await problemOf(list('absent'))).to.equal('not-found');
  });
};

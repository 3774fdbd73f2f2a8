import { expect } from 'chai';
import type { FileEvent } from '../../../src/contracts/files.ts';
import { problemOf, type Place } from './place.ts';

export const watching = (begin: () => Promise<Place>): void => {
  it('reports changes in a folder, until the folder is gone', async () => {
    const place = await begin();
    await place.under.sh(`cd ${place.under.folder}; mkdir -p watched/below; echo >watched/old`);
    const watched = await follow(place, 'watched', { recursive: false });

    await place.put('watched/new', 'content');
    await place.put('watched/new', 'other content');
    await watched.until((event) => shown(event) === 'created new');
    await place.under.sh(`cd ${place.under.folder}/watched; echo more >>old; echo >below/unseen`);
    await watched.until((event) => shown(event) === 'changed old');
    await place.under.sh(`cd ${place.under.folder}/watched; mv old older; rm new`);
    for (const change of ['removed old', 'created older', 'removed new'])
      await watched.until((event) => shown(event) === change);
    expect(watched.seen.map(shown)).not.to.include('created below/unseen');
    await place.under.sh(`rm -r ${place.under.folder}/watched`);
    await watched.ended();

    expect(watched.seen.at(-1)?.type).to.equal('gone');
    const drafts = watched.seen.map(shown).filter((event) => /\.sandpool|#\d/.test(event));
    expect(drafts).to.deep.equal([]);
  });

  it('reports changes in a whole tree, including new folders', async () => {
    const place = await begin();
    await place.under.sh(`mkdir -p ${place.under.folder}/watched/a/b`);
    const watched = await follow(place, 'watched', { recursive: true });

    await place.under.sh(`cd ${place.under.folder}/watched; echo >a/b/deep`);
    await watched.until((event) => shown(event) === 'created a/b/deep');
    await place.under.sh(`cd ${place.under.folder}/watched; mkdir -p n/m; echo >n/m/new`);
    await watched.until((event) => shown(event) === 'created n/m/new');
    await place.under.sh(`cd ${place.under.folder}/watched; mv a c; echo >c/b/moved`);
    for (const change of ['created c/b/moved', 'removed a', 'created c'])
      await watched.until((event) => shown(event) === change);

    watched.leave();
  });

  it('ends with its signal, and refuses a path that is not a folder', async () => {
    const place = await begin();
    await place.put('file', '');
    const watched = await follow(place, '.', { recursive: false });

    watched.leave();
    await watched.ended();
    const refused = follow(place, 'file', { recursive: false });
    expect(await problemOf(refused)).to.equal('not-a-folder');
  });
};

const shown = ({ type, path }: FileEvent): string => `${type} ${String(path)}`;

const follow = async (place: Place, path: string, request: { readonly recursive: boolean }) => {
  const leaving = new AbortController();
  const batches = await place.files.watch(place.at(path), request, leaving.signal);
  const seen: FileEvent[] = [];
  const reading = batches[Symbol.asyncIterator]();
  const next = async (): Promise<boolean> => {
    const { done, value } = await reading.next();
    if (done !== true) seen.push(...value);
    return done !== true;
  };
  return {
    seen,
    /** Reads on until such an event was seen; fails where the stream ends before. */
    until: async (wanted: (event: FileEvent) => boolean): Promise<void> => {
      while (!seen.some(wanted))
        if (!(await next())) throw new Error(`it ended; seen: ${seen.map(shown).join(', ')}`);
    },
    /** Reads on to the end, which an abort makes too. */
    ended: async (): Promise<void> => {
      try {
        while (await next()) continue;
      } catch (error) {
        if (!leaving.signal.aborted) throw error;
      }
    },
    leave: () => leaving.abort(new Error('left')),
  };
};

import { once } from 'node:events';
import { expect } from 'chai';
import { InstanceGone } from '../../../src/contracts/sandbox-driver.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { never, problemOf, type Place } from './place.ts';

export const reading = (begin: () => Promise<Place>): void => {
  it('describes a link itself, not its target', async () => {
    const place = await begin();
    await place.under.sh(
      `cd ${place.under.folder}; printf abc >file; chmod 640 file; mkdir folder; ln -s file link`,
    );

    const file = await place.files.stat(place.at('file'), never);
    const folder = await place.files.stat(place.at('folder'), never);
    const link = await place.files.stat(place.at('link'), never);

    expect(file).to.include({ kind: 'file', size: 3, mode: 0o640 });
    expect(Number(file.mtimeNs) / 1e6).to.be.closeTo(Date.now(), 600_000);
    expect(folder.kind).to.equal('folder');
    expect(link.kind).to.equal('link');
    expect(String(link.target)).to.equal('file');
  });

  it('reads a file of any bytes, even through a link', async () => {
    const place = await begin();
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7) % 251));
    await place.put('file', bytes);
    await place.under.sh(`ln -s file ${place.under.folder}/link`);

    expect((await place.get('file')).equals(bytes)).to.equal(true);
    expect((await place.get('link')).equals(bytes)).to.equal(true);
    await place.put('empty', '');
    expect((await place.get('empty')).length).to.equal(0);
  });

  it("reads the kernel's files although their size is 0", async () => {
    const place = await begin();

    for (const path of ['/proc/version', '/proc/filesystems'])
      expect(String(await place.get(path)), path).to.equal(await place.under.sh(`cat ${path}`));
    expect(String(await place.get('/proc/version', { range: { start: 0, end: 4 } }))) //
      .to.equal('Linux');
  });

  it('reads the requested part', async () => {
    const place = await begin();
    await place.put('file', '0123456789');

    expect(String(await place.get('file', { range: { start: 2, end: 4 } }))).to.equal('234');
    expect(String(await place.get('file', { range: { start: 7 } }))).to.equal('789');
    expect(String(await place.get('file', { range: { start: 8, end: 100 } }))).to.equal('89');
    expect(String(await place.get('file', { range: { suffix: 3 } }))).to.equal('789');
    expect(String(await place.get('file', { range: { suffix: 30 } }))).to.equal('0123456789');
    const { start, end, stat, content } = await place.files.open(
      place.at('file'),
      { range: { start: 2, end: 4 } },
      never,
    );
    content.destroy();
    expect({ start, end, size: stat.size }).to.deep.equal({ start: 2, end: 5, size: 10 });
    const refused = place.files.open(place.at('file'), { range: { start: 10 } }, never);
    expect(await rejection(refused)).to.include({ problem: 'bad-range', size: 10 });
  });

  it('reads the opened file even if its name is reused in the meantime', async () => {
    const place = await begin();
    const old = Buffer.alloc(8 << 20, 'o');
    await place.put('file', old);
    const { content } = await place.files.open(place.at('file'), {}, never);
    const pieces: Buffer[] = [];
    content.once('data', (piece: Buffer) => {
      pieces.push(piece);
      content.pause();
    });
    await once(content, 'data');

    await place.put('file', 'new');
    content.on('data', (piece: Buffer) => pieces.push(piece)).resume();
    await once(content, 'end');

    expect(Buffer.concat(pieces).equals(old)).to.equal(true);
    expect(String(await place.get('file'))).to.equal('new');
  });

  it('never opens anything but a file', async () => {
    const place = await begin();
    await place.under.sh(`cd ${place.under.folder}; mkfifo fifo; mkdir folder`);

    expect(await problemOf(place.get('fifo'))).to.equal('not-a-file');
    expect(await problemOf(place.get('/dev/zero'))).to.equal('not-a-file');
    expect(await problemOf(place.get('folder'))).to.equal('is-a-folder');
    expect(await problemOf(place.get('absent'))).to.equal('not-found');
    expect(await problemOf(place.get('absent/file'))).to.equal('not-found');
  });

  it('reports that a missing sandbox is gone', async () => {
    const place = await begin();
    const gone = { ...place.at('file'), id: place.under.unknownId };

    expect(await rejection(place.files.stat(gone, never))).to.be.instanceOf(InstanceGone);
  });

  it('ends a call with the reason of its signal', async () => {
    const place = await begin();
    await place.put('file', Buffer.alloc(4 << 20));
    const leaving = new AbortController();
    const { content } = await place.files.open(place.at('file'), {}, leaving.signal);
    const failed = once(content, 'error');
    leaving.abort(new Error('the client left'));

    expect(await failed).to.have.nested.property('[0].message', 'the client left');
    const late = place.files.stat(place.at('file'), AbortSignal.abort(new Error('too late')));
    expect((await rejection(late)).message).to.equal('too late');
  });
};

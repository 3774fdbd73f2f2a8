import { Readable } from 'node:stream';
import { setImmediate as turnOver } from 'node:timers/promises';
import { expect } from 'chai';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';
import { never, problemOf, type Place } from './place.ts';

export const writing = (begin: () => Promise<Place>): void => {
  it('accepts content with empty pieces', async () => {
    const place = await begin();
    const pieces = ['', 'one', '', '', 'two', ''].map((text) => Buffer.from(text));

    await place.put('file', Readable.from(pieces));

    expect(String(await place.get('file'))).to.equal('onetwo');
  });

  it('accepts a buffer, even an empty one, with the same refusals', async () => {
    const place = await begin();
    const bytes = Buffer.alloc(250_000, 'bytes');
    await place.under.sh(`mkdir ${place.under.folder}/folder`);

    await Promise.all([place.put('many', bytes), place.put('none', Buffer.alloc(0))]);

    expect((await place.get('many')).equals(bytes)).to.equal(true);
    expect((await place.get('none')).length).to.equal(0);
    expect(await problemOf(place.put('folder', bytes))).to.equal('is-a-folder');
    expect(await problemOf(place.put('none', bytes, { overwrite: false }))).to.equal('exists');
  });

  it('creates a file, and reports that it is new', async () => {
    const place = await begin();

    const made = await place.put('file', 'content');

    expect(made.created).to.equal(true);
    expect(made.stat).to.include({ kind: 'file', size: 7, mode: 0o644 });
    expect(await place.under.sh(`cat ${place.under.folder}/file`)).to.equal('content');
  });

  it('keeps the mode of a replaced file, unless another is given', async () => {
    const place = await begin();
    await place.put('file', 'one', { mode: 0o700 });

    const kept = await place.put('file', 'two');
    const given = await place.put('file', 'three', { mode: 0o600 });

    expect(kept).to.have.nested.property('stat.mode', 0o700);
    expect(kept.created).to.equal(false);
    expect(given).to.have.nested.property('stat.mode', 0o600);
    expect(String(await place.get('file'))).to.equal('three');
  });

  it("keeps a file's metadata until the next write, or never stores it", async () => {
    const place = await begin();
    const metadata = { 'the key': '', ['k'.repeat(246)]: 'a "value" = ~', __proto__x: '1' };
    const statOf = (path: string) => place.files.stat(place.at(path), never);
    await place.put('file', 'old');

    const writing = place.put('file', 'new', { metadata });

    if (!place.under.keepsMetadata) {
      expect(await problemOf(writing)).to.equal('no-metadata');
      expect(String(await place.get('file'))).to.equal('old');
      expect(await place.under.sh(`ls -A ${place.under.folder}`)).to.equal('file\n');
      return;
    }
    expect((await writing).stat.metadata).to.deep.equal(metadata);
    expect((await statOf('file')).metadata).to.deep.equal(metadata);
    const moving = { to: place.at('moved').path, overwrite: true };
    expect(await place.files.move(place.at('file'), moving, never)).to.deep.include({ metadata });
    const { entries } = await place.files.list(place.at('.'), { depth: 1, limit: 9 }, never);
    expect(entries.map(({ stat }) => stat.metadata)).to.deep.equal([metadata]);
    await place.put('moved', 'again', { metadata: { other: '2' } });
    expect((await statOf('moved')).metadata).to.deep.equal({ other: '2' });
    expect((await place.put('moved', 'last')).stat).to.not.have.property('metadata');
  });

  it('replaces the target of a link, not the link', async () => {
    const place = await begin();
    await place.under.sh(`cd ${place.under.folder}; mkdir deep; ln -s deep/target link`);

    await place.put('link', 'through');

    expect(await place.under.sh(`cat ${place.under.folder}/deep/target`)).to.equal('through');
    expect((await place.files.stat(place.at('link'), never)).kind).to.equal('link');
  });

  it('replaces a file only if allowed', async () => {
    const place = await begin();
    await place.put('file', 'old');

    expect(await problemOf(place.put('file', 'new', { overwrite: false }))).to.equal('exists');
    expect(String(await place.get('file'))).to.equal('old');
    expect((await place.put('other', 'new', { overwrite: false })).created).to.equal(true);
  });

  it('creates a file for one of several simultaneous writers', async () => {
    const place = await begin();
    const each = Array.from({ length: 8 }, (_, number) =>
      place.put('file', `writer ${number}`, { overwrite: false }).then(
        () => `writer ${number}`,
        () => undefined,
      ),
    );

    const [winner, ...others] = (await Promise.all(each)).filter((name) => name !== undefined);

    expect(others).to.deep.equal([]);
    expect(String(await place.get('file'))).to.equal(winner);
  });

  it('replaces only the named version', async () => {
    const place = await begin();
    const { stat: first } = await place.put('file', 'first');
    const { stat: second } = await place.put('file', 'the second', { ifMatch: [first] });

    expect(await problemOf(place.put('file', 'x', { ifMatch: [first] }))).to.equal('changed');
    expect(await problemOf(place.put('absent', 'x', { ifMatch: 'any' }))).to.equal('changed');
    await place.put('file', 'third', { ifMatch: [first, second] });
    await place.put('file', 'fourth', { ifMatch: 'any' });
    expect(String(await place.get('file'))).to.equal('fourth');
  });

  it('matches a version with few or no nanoseconds', async () => {
    const place = await begin();
    await place.put('file', 'first');
    const file = `${place.under.folder}/file`;
    for (const time of ['2001-02-03 04:05:06.000000789', '2001-02-03 04:05:06']) {
      // The touch of busybox takes no part of a second.
      await place.under.sh(`touch -d '${time}' ${file} || touch -d '${time.slice(0, 19)}' ${file}`);
      const stat = await place.files.stat(place.at('file'), never);

      await place.put('file', 'next', { ifMatch: [stat] });
    }
  });

  it('changes nothing if the content fails', async () => {
    const place = await begin();
    await place.put('file', 'old');
    const failing = Readable.from(
      (async function* () {
        yield Buffer.alloc(1 << 20);
        await Promise.resolve();
        throw new Error('the disk of the client broke');
      })(),
    );

    const failed = await rejection(place.put('file', failing));

    expect(failed.message).to.equal('the disk of the client broke');
    expect(String(await place.get('file'))).to.equal('old');
    expect(await place.under.sh(`ls -A ${place.under.folder}`)).to.equal('file\n');
  });

  it('changes nothing if it is cancelled', async () => {
    const place = await begin();
    await place.put('file', 'old');
    const leaving = new AbortController();
    const endless = new Readable({
      read() {
        this.push(Buffer.alloc(64 << 10));
        if (this.readableFlowing) setImmediate(() => leaving.abort(new Error('enough')));
      },
    });

    const failed = await rejection(place.put('file', endless, {}, leaving.signal));

    expect(failed.message).to.equal('enough');
    expect(endless.destroyed).to.equal(true);
    expect(String(await place.get('file'))).to.equal('old');
    expect(await place.under.sh(`ls -A ${place.under.folder}`)).to.equal('file\n');
  });

  it('can be cancelled silently before any content was read', async () => {
    const place = await begin();
    for (const turns of [0, 1, 4, 16, 64]) {
      const leaving = new AbortController();
      const silent = new Readable({ read: () => undefined });
      const failed = rejection(place.put('file', silent, {}, leaving.signal));
      for (let turn = 0; turn < turns; turn += 1) await turnOver();
      leaving.abort(new Error('enough'));

      expect((await failed).message).to.equal('enough');
      expect(silent.destroyed).to.equal(true);
    }
    expect(await place.under.sh(`ls -A ${place.under.folder}`)).to.equal('');
  });

  it('refuses to replace anything but a file, and a missing folder', async () => {
    const place = await begin();
    await place.under.sh(`cd ${place.under.folder}; mkfifo fifo; mkdir folder; echo >file`);

    expect(await problemOf(place.put('folder', 'x'))).to.equal('is-a-folder');
    expect(await problemOf(place.put('fifo', 'x'))).to.equal('not-a-file');
    expect(await problemOf(place.put('absent/file', 'x'))).to.equal('not-found');
    expect(await problemOf(place.put('file/below', 'x'))).to.equal('not-a-folder');
    expect(await problemOf(place.put('/proc/version', 'x'))).to.be.oneOf(['denied', 'not-found']);
    await place.put('absent/deep/file', 'x', { parents: true });
    expect(String(await place.get('absent/deep/file'))).to.equal('x');
  });

  it('writes many files at once, each with its own content', async () => {
    const place = await begin();
    const all = Array.from({ length: 12 }, (_, number) => ({
      name: `file-${number}`,
      bytes: Buffer.alloc(100_000 + number * 10_007, String.fromCharCode(97 + number)),
    }));

    await Promise.all(all.map(({ name, bytes }) => place.put(name, bytes)));
    const back = await Promise.all(all.map(({ name }) => place.get(name)));

    expect(back.map((bytes, at) => bytes.equals(all[at]?.bytes ?? Buffer.alloc(0)))).to.deep.equal(
      all.map(() => true),
    );
  });

  it('reads content no faster than the sandbox does', async () => {
    const place = await begin();
    let given = 0;
    const source = new Readable({
      read() {
        given += 1;
        this.push(given > 200 ? null : Buffer.alloc(64 << 10, given));
      },
    });

    await place.put('file', source);

    expect((await place.files.stat(place.at('file'), never)).size).to.equal(200 * (64 << 10));
    expect(await place.under.sh(`tail -c 1 ${place.under.folder}/file | od -An -tu1`)).to.match(
      /^\s*200\s*$/,
    );
  });

  it('keeps the old file intact if the disk is full', async function () {
    const place = await begin();
    const { smallFolder } = place.under;
    if (smallFolder === undefined) return skipBecause(this, 'no small folder is at hand');
    await place.put(`${smallFolder}/full`, 'old');
    const large = new Readable({
      read() {
        this.push(Buffer.alloc(64 << 10, 1));
      },
    });

    expect(await problemOf(place.put(`${smallFolder}/full`, large))).to.equal('no-space');

    expect(large.destroyed).to.equal(true);
    expect(String(await place.get(`${smallFolder}/full`))).to.equal('old');
    expect(await place.under.sh(`ls -A ${smallFolder} | grep -c sandpool; true`)).to.equal('0\n');
  });
};

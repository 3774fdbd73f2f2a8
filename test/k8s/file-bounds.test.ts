import { PassThrough, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect } from 'chai';
import { FileRefused, type FilePage } from '../../src/contracts/files.ts';
import { NotJoinable, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { listFolder } from '../../src/k8s/files/file-list.ts';
import { writeFile } from '../../src/k8s/files/file-write.ts';
import { watchFolder } from '../../src/k8s/files/file-watch.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { GatheredBytes } from '../../src/k8s/streams/gathered-bytes.ts';
import type { ScriptChannel } from '../../src/k8s/streams/script-channel.ts';
import { rejection } from '../support/harness/rejection.ts';

const STAT = '81a4 1 1700000000 0 0 2023-11-14 22:13:20.000000000 +0000';
const never = new AbortController().signal;
const target = {} as PodTarget;

/** A container that says it has these names in a folder, and of each that it is a file. */
const aContainer = (
  names: Iterable<string>,
  { stat = STAT, held = new GatheredBytes().begin(''), cut = 0 } = {},
): ScriptChannel => {
  const output = new PassThrough({ highWaterMark: 1 << 30 });
  output.write('folder\n');
  let said = '';
  for (const name of names) {
    said += `./${name}\0`;
    if (said.length > 1 << 16) {
      output.write(said);
      said = '';
    }
  }
  output.write(`${said}\0`);
  let wanted = '';
  const channel: Pick<ScriptChannel, 'output' | 'hold' | 'write' | 'endInput' | 'close'> = {
    output,
    hold: (bytes) => held.hold(bytes),
    write: async (bytes) => {
      wanted += bytes.toString('latin1');
    },
    endInput: () => {
      const lines = wanted.split('\0').filter((name) => name !== '');
      const all = `${lines.map((name) => `${stat} ${name}\n`).join('')}\0`;
      output.end(all.slice(0, all.length - cut));
    },
    close: () => held.end(),
  };
  return channel as ScriptChannel;
};

function* numbered(count: number, tail = ''): Generator<string> {
  for (let at = 0; at < count; at += 1) yield `${String(at).padStart(7, '0')}${tail}`;
}

describe('what a container says of its folders', () => {
  it('fills pages of a mebibyte of paths at most, each with the one of its folder', async () => {
    const path = Buffer.from(`/${'p'.repeat(3_990)}`);
    const request = { depth: 1, limit: 10_000 };
    const seen: string[] = [];
    let pages = 0;
    let cursor: string | undefined;
    do {
      const page = await listFolder(async () => aContainer(numbered(1_000)), {
        target,
        path,
        request: { ...request, ...(cursor === undefined ? {} : { cursor }) },
        signal: never,
      });
      const bytes = page.entries.map((entry) => path.length + entry.path.length);
      expect(bytes.reduce((sum, each) => sum + each, 0)).to.be.below((1 << 20) + 5_000);
      seen.push(...page.entries.map((entry) => String(entry.path)));
      pages += 1;
      cursor = page.next;
    } while (cursor !== undefined);

    expect(seen).to.deep.equal([...numbered(1_000)]);
    expect(pages).to.equal(4);
  });

  it('is not listened to without end', async () => {
    const place = { target, path: Buffer.from('/'), signal: never };
    const listed = listFolder(async () => aContainer(numbered(400_000, 'n'.repeat(200))), {
      ...place,
      request: { depth: 1, limit: 10 },
    });
    const watched = watchFolder(async () => aContainer(numbered(20_000)), {
      ...place,
      request: { recursive: false },
    });

    for (const call of [listed, watched]) {
      const error = await rejection(call);
      expect(error).to.be.instanceOf(FileRefused).with.property('problem', 'too-many');
    }
  });

  it('is held up to a share of the team’s, whoever asks, until it was read', async () => {
    const gathered = new GatheredBytes({ tenantBytes: 1 << 20, totalBytes: 4 << 20 });
    const list = (namespace: string): Promise<FilePage> =>
      listFolder(async () => aContainer(numbered(3_000), { held: gathered.begin(namespace) }), {
        target,
        path: Buffer.from(`/${'p'.repeat(100)}`),
        request: { depth: 1, limit: 10_000 },
        signal: never,
      });
    const other = gathered.begin('blue');
    other.hold(900_000);

    expect(await rejection(list('blue'))).to.be.instanceOf(NotJoinable);
    expect((await list('red')).entries).to.have.length(3_000);
    other.end();
    for (let time = 0; time < 9; time += 1)
      expect((await list('blue')).entries).to.have.length(3_000);
  });

  it('ends a watch once its looks take more than the share', async () => {
    const held = new GatheredBytes({ tenantBytes: 5_000, totalBytes: 9_000 }).begin('blue');
    const looks = [1, 20].map((count) => {
      const names = [...numbered(count)].map((name) => `./${name}`);
      const told = names.map((name) => `${STAT} ${name}\n`);
      return `${names.join('\0')}\0\0${told.join('')}\0\0`;
    });
    const output = Readable.from([Buffer.from(`folder\n${looks.join('')}`)]);
    const hold = (bytes: number): void => held.hold(bytes);
    const events = await watchFolder(
      async () => ({ output, hold, close: () => held.end() }) as unknown as ScriptChannel,
      {
        target,
        path: Buffer.from('/'),
        request: { recursive: false },
        signal: never,
        rest: async () => {},
      },
    );

    const error = await rejection(events[Symbol.asyncIterator]().next());
    expect(error).to.be.instanceOf(FileRefused).with.property('problem', 'too-many');
  });

  it('is read once a second, however often it says how a folder stands', async () => {
    let looks = 0;
    let rests = 0;
    const output = Readable.from(
      (function* () {
        yield Buffer.from('folder\n');
        for (looks = 1; ; looks += 1) yield Buffer.from(`./${looks}\0\0${STAT} ./${looks}\n\0\0`);
      })(),
      { highWaterMark: 1 },
    );
    const leaving = new AbortController();
    const events = await watchFolder(
      async () =>
        ({ output, hold: () => {}, close: () => output.destroy() }) as unknown as ScriptChannel,
      {
        target,
        path: Buffer.from('/'),
        request: { recursive: false },
        signal: leaving.signal,
        // Nobody rests more than three times.
        rest: () => ((rests += 1) <= 3 ? Promise.resolve() : new Promise(() => {})),
      },
    );
    const reading = events[Symbol.asyncIterator]();
    for (let look = 0; look < 3; look += 1) await reading.next();
    void reading.next().catch(() => {});
    await new Promise(setImmediate);

    expect(rests).to.equal(4);
    expect(looks).to.be.at.most(6);
    leaving.abort();
  });

  it('is no answer where its end was lost on the way', async () => {
    const listed = (open: (script: string) => ScriptChannel): Promise<FilePage> =>
      listFolder(async (script) => open(script), {
        target,
        path: Buffer.from('/'),
        request: { depth: 1, limit: 10 },
        signal: never,
      });
    const aLink = { stat: STAT.replace('81a4', 'a1ff') };
    const saying = (said: string): ScriptChannel =>
      ({
        output: Readable.from([Buffer.from(said)]),
        hold: () => {},
        endInput: () => {},
        close: () => {},
      }) as unknown as ScriptChannel;

    for (const cut of [1, 10, 200])
      expect(await rejection(listed(() => aContainer(['a', 'b', 'c'], { cut }))))
        .to //
        .be.instanceOf(OutcomeUnknown);
    const links = (said: string): Promise<FilePage> =>
      listed((script) => (script === 'list' ? aContainer(['a', 'b'], aLink) : saying(said)));
    expect(await rejection(links('to-a\0to'))).to.be.instanceOf(OutcomeUnknown);
    const { entries } = await links('to-a\0to-b\0');
    expect(entries.map(({ stat }) => String(stat.target))).to.deep.equal(['to-a', 'to-b']);
  });

  it('is not waited for without end where a list was called off', async () => {
    const leaving = new AbortController();
    const hanging = new PassThrough();
    const listed = listFolder(
      async (script) => {
        if (script === 'list') return aContainer(['link'], { stat: STAT.replace('81a4', 'a1ff') });
        setImmediate(() => leaving.abort(new Error('nobody waits')));
        const close = () => void hanging.destroy();
        return { output: hanging, endInput: () => {}, close } as unknown as ScriptChannel;
      },
      {
        target,
        path: Buffer.from('/'),
        request: { depth: 1, limit: 10 },
        signal: leaving.signal,
      },
    );

    expect(await rejection(listed)).to.have.property('message', 'nobody waits');
    expect(hanging.destroyed).to.equal(true);
  });

  it('is not written with metadata, which a Pod does not keep', async () => {
    const written = writeFile(() => Promise.reject(new Error('a channel was opened')), {
      target,
      path: Buffer.from('/file'),
      content: Readable.from(['all of it']),
      request: { overwrite: true, parents: false, metadata: { a: 'b' } },
      signal: never,
    });

    expect(await rejection(written)).to.include({ problem: 'no-metadata' });
  });

  it('is not waited for without end where a write was called off', async () => {
    for (const says of ['', 'ready\n']) {
      const output = new PassThrough();
      output.write(says);
      const closed: boolean[] = [];
      const channel: Pick<ScriptChannel, 'output' | 'hold' | 'write' | 'endInput' | 'close'> = {
        output,
        hold: () => {},
        write: async () => {},
        endInput: () => {},
        close: (how) => {
          closed.push(how?.kill === true);
          output.destroy();
        },
      };
      const leaving = new AbortController();
      const content = Readable.from(['all of it']).on('error', () => {});
      const written = writeFile(async () => channel as ScriptChannel, {
        target,
        path: Buffer.from('/hangs'),
        content,
        request: { overwrite: true, parents: false },
        signal: leaving.signal,
        removedWithinMs: 1,
      });
      if (says !== '') await finished(content);
      leaving.abort(new Error('nobody waits'));

      await rejection(written);
      expect(closed).to.deep.equal([true, false]);
    }
  });
});

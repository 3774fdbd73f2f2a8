import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { FileRefused } from '../../src/contracts/files.ts';
import { SafeEntries } from '../../src/k8s/files/archives/safe-entries.ts';
import {
  archiveEnd,
  paddingOf,
  TarDamaged,
  writeHeader,
  type LongNames,
  type TarEntry,
} from '../../src/k8s/files/archives/tar-header.ts';
import { tarParts, type TarPart } from '../../src/k8s/files/archives/tar-parts.ts';
import { fileScripts, textInput } from '../../src/k8s/files/file-scripts.ts';
import { scriptCommand } from '../../src/k8s/streams/pod-script.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('archives of Pods', () => {
  for (const long of ['pax', 'gnu'] satisfies LongNames[])
    it(`reads what it writes (${long}), in pieces of any size`, async () => {
      const entries = [
        anEntry({ name: `${'a/'.repeat(300)}é`, size: 700 }),
        anEntry({ kind: 'folder', name: 'folder', mode: 0o1755 }),
        anEntry({ kind: 'link', name: 'link', target: 't'.repeat(200), mtime: 1_700_000_000 }),
        anEntry({ kind: 'hard-link', name: 'hard', target: 'x', uid: 4_000_000_000 }),
      ];
      const archive = Buffer.concat([
        ...entries.flatMap((entry) => [
          writeHeader(entry, long),
          Buffer.alloc(entry.size + paddingOf(entry.size)),
        ]),
        archiveEnd(),
      ]);

      for (const size of [1, 511, 513, archive.length]) {
        const parts = await all(tarParts(inPieces(archive, size)));
        expect(parts.flatMap((part) => ('entry' in part ? [part.entry] : []))).to.deep.equal(
          entries,
        );
        const content = parts.flatMap((part) => ('content' in part ? [part.content] : []));
        expect(Buffer.concat(content)).to.have.length(700);
      }
    });

  it('keeps no more of what records say than an entry can have', async () => {
    const header = writeHeader(anEntry({ kind: 'file', size: 2 ** 40 }), 'gnu');
    header.write('x', 156);
    const sum = header.reduce((of, byte, at) => of + (at >= 148 && at < 156 ? 32 : byte), 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);

    expect(await rejection(all(tarParts(inPieces(header, 512))))).to.be.instanceOf(TarDamaged);
  });

  it('takes no numbers that no file has', async () => {
    const late = writeHeader(anEntry({ mtime: 2 ** 52 }), 'gnu');
    const [part] = await all(tarParts(inPieces(Buffer.concat([late, archiveEnd()]), 512)));
    expect(part).to.deep.equal({ entry: anEntry({ mtime: 2 ** 48 - 1 }) });

    const large = writeHeader(anEntry({ size: 2 ** 48 - 1 }), 'gnu');
    expect(await rejection(all(tarParts(inPieces(large, 512))))).to.be.instanceOf(TarDamaged);
  });

  it('keeps so many links in mind, and looks so deep', () => {
    const safe = new SafeEntries();
    const link = (number: number): TarEntry =>
      anEntry({
        kind: 'link',
        name: `${number}`.padStart(3_000, '0').replace(/(.{200})/g, '$1/'),
        target: 'x',
      });
    const keepMany = (): void => {
      for (let number = 0; number < 10_000; number += 1) safe.next(link(number));
    };

    expect(keepMany).to.throw(FileRefused, 'more links than');
    const deep = anEntry({ name: 'd/'.repeat(300) });
    expect(() => new SafeEntries().next(deep)).to.throw(FileRefused, 'too many folders');
  });

  it('says that a container has no tar', () => {
    const programs = mkdtempSync(join(tmpdir(), 'sandpool-programs-'));
    mkdirSync(join(programs, 'bin'));
    for (const name of readdirSync('/usr/bin'))
      if (name !== 'tar') symlinkSync(join('/usr/bin', name), join(programs, 'bin', name));

    for (const script of ['pack', 'unpack'] as const) {
      const [, ...args] = scriptCommand().argv;
      const input = Buffer.concat([fileScripts()[script], textInput(Buffer.from('/tmp'))]);
      const env = { PATH: join(programs, 'bin') };
      const { stdout } = spawnSync('/bin/sh', args, { input, env });
      expect(String(stdout)).to.match(/^\d+\n! lacking tar\n$/);
    }
    rmSync(programs, { recursive: true });
  });
});

const anEntry = (parts: Partial<TarEntry>): TarEntry => ({
  ...{ kind: 'file', name: 'name', target: '', size: 0, mode: 0o644, uid: 0, gid: 0, mtime: 0 },
  ...parts,
});

async function* inPieces(archive: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < archive.length; at += size) yield archive.subarray(at, at + size);
}

const all = async (parts: AsyncIterable<TarPart>): Promise<TarPart[]> => {
  const found: TarPart[] = [];
  for await (const part of parts) found.push(part);
  return found;
};

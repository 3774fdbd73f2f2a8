import { expect } from 'chai';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileSource } from '../../src/cli/common/local-files.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('a local file to upload', () => {
  it('is not opened before its bytes are read, and only then reports errors', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-local-'));
    writeFileSync(join(folder, 'a'), 'a');

    const { bytes, size } = await fileSource(join(folder, 'a'));
    rmSync(folder, { recursive: true });
    await new Promise((resolve) => {
      setImmediate(resolve);
    }); // an open under way would fail here, unheard

    expect(size).to.equal(1);
    expect(
      await rejection(
        (async () => {
          for await (const _ of bytes) throw new Error('there is something');
        })(),
      ),
    ).to.have.property('message', `${join(folder, 'a')} does not exist`);
  });

  it('is sent at its length at the start of the copy, even if it grows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-local-'));
    const path = join(folder, 'log');
    writeFileSync(path, 'a'.repeat(200_000));
    let sent = 0;
    for await (const piece of (await fileSource(path)).bytes) {
      sent += piece.length;
      appendFileSync(path, piece);
    }
    rmSync(folder, { recursive: true });
    expect(sent).to.equal(200_000);
  });

  it('is sent completely if it is a kernel file that reports no length', async () => {
    let text = '';
    for await (const piece of (await fileSource('/proc/version')).bytes) text += String(piece);
    expect(text).to.match(/^Linux/);
  });
});

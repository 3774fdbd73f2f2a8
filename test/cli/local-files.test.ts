import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileSource } from '../../src/cli/copy/local-files.ts';
import { rejection } from '../support/rejection.ts';

describe('a file that is to be sent', () => {
  it('is not opened before its bytes are asked for, and says what is wrong then', async () => {
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
});

import { Readable } from 'node:stream';
import { expect } from 'chai';
import { FileRefused } from '../../../src/contracts/files.ts';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { tarOf } from '../../support/builders/an-oci-layout.ts';

const MILLION = 1_000_000;

describe('an archive of a million entries', function () {
  let watched: WatchedDriver;
  let id: string;
  before(async () => {
    buildLauncher();
    watched = await aWatchedDriver();
    ({ id } = await watched.launched());
  });
  after(() => watched.close());

  it('is refused if the sandbox lacks room, and leaves the sandbox working', async () => {
    const place = { id, path: Buffer.from('/tmp/many') };
    const archive = await manyFiles();

    const refused = await rejection(watched.driver.files.writeTree(place, archive, never));

    expect(refused).to.be.instanceOf(FileRefused).and.include({ problem: 'no-space' });
    expect(archive.destroyed).to.equal(true);
    expect(await watched.sh(id, 'rm -r /tmp/many; echo works')).to.equal('works\n');
  });
});

const never = new AbortController().signal;

/** A million headers of empty files. */
const manyFiles = async (): Promise<Readable> => {
  const header = (await tarOf([{ name: 'f0000000', content: '' }])).subarray(0, 512);
  const sumOfNone = Number.parseInt(header.toString('latin1', 148, 154), 8);
  async function* headers(): AsyncGenerator<Buffer> {
    for (let from = 0; from < MILLION; from += 128) {
      const blocks: Buffer[] = [];
      for (let number = from; number < Math.min(from + 128, MILLION); number += 1) {
        const block = Buffer.from(header);
        const digits = String(number).padStart(7, '0');
        block.write(digits, 1, 'latin1');
        const sum = sumOfNone + [...digits].reduce((all, digit) => all + Number(digit), 0);
        block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
        blocks.push(block);
      }
      yield Buffer.concat(blocks);
    }
    yield Buffer.alloc(1_024);
  }
  return Readable.from(headers(), { objectMode: false });
};

import { expect } from 'chai';
import { ByteQueue } from '../../../src/lib/streams/byte-queue.ts';

const LONG = 4_096;
const BLOCK = 16_384;

describe('a queue of bytes', () => {
  it('returns bytes unchanged, in any pieces', () => {
    const queue = new ByteQueue();
    const pieces = [1, 3, LONG, 5, LONG - 1, LONG - 1, 2, 100_000, 0, 7].map((size, at) =>
      Buffer.alloc(size, at + 1),
    );
    for (const piece of pieces) queue.push(piece);
    const first = queue.shift();
    expect(
      Buffer.concat([first ?? Buffer.alloc(0), queue.takeAll()]).equals(Buffer.concat(pieces)),
    ).to.equal(true);
    expect([queue.isEmpty, queue.shift(), queue.takeAll().length]).to.deep.equal([
      true,
      undefined,
      0,
    ]);
  });

  it('does not overwrite returned bytes', () => {
    const queue = new ByteQueue();
    queue.push(Buffer.from('one'));
    const taken = queue.shift();
    queue.push(Buffer.from('two'));
    expect([String(taken), String(queue.takeAll())]).to.deep.equal(['one', 'two']);
  });

  it('uses a few blocks for a hundred thousand single bytes', () => {
    const queue = new ByteQueue();
    for (let at = 0; at < 100_000; at += 1) queue.push(Buffer.from('x'));
    let blocks = 0;
    while (queue.shift()) blocks += 1;
    expect(blocks).to.be.at.most(100_000 / BLOCK + 6);
  });
});

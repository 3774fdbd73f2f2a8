import { expect } from 'chai';
import { boundsOf, JsonReader, LoopShare } from '../../../src/lib/streams/json-reader.ts';

const read = (text: string, bounds = boundsOf(0, 0), pieceBytes = 7): unknown => {
  const reader = new JsonReader(bounds);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes)
    reader.push(bytes.subarray(at, at + pieceBytes));
  return reader.value();
};

describe('JSON of others', () => {
  it('is read however it is cut, and counts nothing within its texts', () => {
    const value = { 'a[{,': ['é\\', '"[[[', '\\"'], b: [1, { c: null }] };
    const text = JSON.stringify(value);
    for (let bytes = 1; bytes <= text.length; bytes += 1)
      expect(read(text, { mostBytes: 1_000, mostValues: 8 }, bytes)).to.deep.equal(value);
    expect(() => read(text, { mostBytes: 1_000, mostValues: 7 })).to.throw('too many values');
    expect(read('')).to.equal(undefined);
  });

  it('is refused while it comes once it has more values, bytes or depth than it may', () => {
    const pushes = (piece: string): number => {
      const reader = new JsonReader(boundsOf(0, 0));
      let pushed = 0;
      expect(() => {
        for (; ; pushed += 1) reader.push(Buffer.from(piece));
      }).to.throw(/values|long|deeply/);
      return pushed;
    };
    expect(pushes('[],')).to.be.within(4_000, 4_200);
    expect(pushes('[')).to.equal(256);
    expect(pushes(' '.repeat(64))).to.equal(1_024);
    expect(boundsOf(10, 100)).to.deep.equal({ mostBytes: 66_536, mostValues: 9_472 });
  });
});

describe('a share of the event loop', () => {
  it('has who worked rest for four times as long, and nobody else', async () => {
    let now = 0;
    let rested = 0;
    const share = new LoopShare({
      now: () => now,
      rest: async (ms) => {
        now += ms;
        rested += ms;
      },
    });
    const work = (ms: number) => share.work('evil', () => (now += ms));
    await work(20);
    await work(0);
    expect(rested).to.equal(0);
    await work(100);
    await share.work('good', () => undefined);
    expect(rested).to.equal(0);
    await work(1);
    expect(rested).to.equal(400);
  });
});

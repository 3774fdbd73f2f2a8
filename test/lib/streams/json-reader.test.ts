import { expect } from 'chai';
import fc from 'fast-check';
import {
  boundsOf,
  JsonReader,
  LoopShare,
  type InTurn,
} from '../../../src/lib/streams/json-reader.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { runs } from '../../support/harness/runs.ts';

const atOnce: InTurn = async (work) => work();

const read = async (
  text: string,
  bounds = boundsOf(0, 0),
  { pieceBytes = 7, inTurn = atOnce } = {},
): Promise<unknown> => {
  const reader = new JsonReader(bounds);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes)
    reader.push(bytes.subarray(at, at + pieceBytes));
  return await reader.value(inTurn);
};

/** What it reads, or that it refuses. */
const outcomeOf = (text: string, pieceBytes: number): Promise<unknown> =>
  read(text, { mostBytes: 8 << 20, mostValues: 1 << 20 }, { pieceBytes }).catch(() => 'refused');

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return 'refused';
  }
};

describe('foreign JSON', () => {
  it('is read in any pieces, and limits do not count inside strings', async () => {
    const value = { 'a[{,': ['é\\', '"[[[', '\\"'], b: [1, { c: null }] };
    const text = JSON.stringify(value);
    for (let bytes = 1; bytes <= text.length; bytes += 1)
      expect(
        await read(text, { mostBytes: 1_000, mostValues: 8 }, { pieceBytes: bytes }),
      ).to.deep.equal(value);
    expect((await rejection(read(text, { mostBytes: 1_000, mostValues: 7 }))).message).to.contain(
      'too many values',
    );
    expect(await read('')).to.equal(undefined);
  });

  it('is refused during the transfer if it exceeds the limit of values, bytes or depth', () => {
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

  it('is parsed in many short turns if it is a long list', async () => {
    const items = Array.from({ length: 500 }, (_, n) => ({ n, text: '],["'.repeat(2_000) }));
    for (const value of [items, { total: 1, items, more: [[1], 2], none: [] }]) {
      const text = JSON.stringify(value);
      const turns: number[] = [];
      const parse = JSON.parse;
      const inTurn: InTurn = async (work) => {
        JSON.parse = (part: string) => {
          turns.push(part.length);
          return parse(part) as unknown;
        };
        try {
          return work();
        } finally {
          JSON.parse = parse;
        }
      };
      const bounds = { mostBytes: 16 << 20, mostValues: 4_096 };
      const found = await read(text, bounds, { pieceBytes: 60_000, inTurn });
      expect(found).to.deep.equal(value);
      expect(turns.length).to.be.within(60, 100);
      expect(Math.max(...turns)).to.be.below(128 << 10);
    }
  });

  it('is joined and decoded in turns, with any content', async () => {
    const text = JSON.stringify({ log: 'x'.repeat(200_000), items: ['y'.repeat(90_000), 1] });
    const decode = Buffer.prototype.toString;
    let [depth, outside] = [0, 0];
    const inTurn: InTurn = async (work) => {
      depth += 1;
      try {
        return work();
      } finally {
        depth -= 1;
      }
    };
    Buffer.prototype.toString = function (this: Buffer, ...terms: Parameters<Buffer['toString']>) {
      if (depth === 0) outside += 1;
      return decode.apply(this, terms);
    };
    try {
      await read(text, { mostBytes: 1 << 20, mostValues: 16 }, { inTurn });
    } finally {
      Buffer.prototype.toString = decode;
    }
    expect(outside).to.equal(0);
  });

  it('is refused if an item of a list is too long', () => {
    for (const end of ['', '",2]']) {
      const reader = new JsonReader({ mostBytes: 16 << 20, mostValues: 4_096 });
      expect(() => reader.push(Buffer.from(`{"items":[1,"${'x'.repeat(1 << 20)}${end}`))).to.throw(
        'an item of the JSON is too long',
      );
    }
  });

  it('is accepted and refused like by JSON.parse', async function () {
    const blank = ' '.repeat(70_000);
    const item = `"${'x'.repeat(70_000)}"`;
    for (const items of [`${item},`, `${blank},1`, `1,${blank},${item}`, `${item},${blank}`])
      for (const text of [`[${items}]`, `{"a":[${items}]}`])
        expect(await outcomeOf(text, 50_000)).to.equal('refused');
    const long = (text: string): string => `"${text.padEnd(40_000, 'é')}"`;
    const token = fc.oneof(
      fc.constantFrom('[', ']', '{', '}', ',', ':', '"a"', '"b":', '"items":[', '\\', ' ', '1'),
      fc.constantFrom(`[${long('a')},`, `${long('b')},`, long('c'), blank),
    );
    const value = fc.array(fc.constantFrom(long('a'), long('[,'), '[1,2]', '{"a":[]}'), {
      maxLength: 6,
    });
    const texts = fc.oneof(
      fc.array(token, { maxLength: 12 }).map((tokens) => tokens.join('')),
      fc.tuple(value, value, token, fc.nat(8)).map(([a, b, odd, place]) => {
        const parts = ['{"items":[', a.join(','), '],"items2":[', b.join(','), '],"n":[1]}'];
        if (place <= parts.length) parts.splice(place, 0, odd);
        return parts.join('');
      }),
      value.map((items) => `[${items.join(',')}]`),
    );
    await fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 1_000, max: 100_000 }), async (text, bytes) => {
        expect(await outcomeOf(text, bytes)).to.deep.equal(text === '' ? undefined : parsed(text));
      }),
      { numRuns: runs(150) },
    );
  });
});

describe('a share of the event loop', () => {
  it('makes a worker pause for four times as long as it worked, and nobody else', async () => {
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

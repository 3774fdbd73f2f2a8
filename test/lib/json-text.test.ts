import { expect } from 'chai';
import fc from 'fast-check';
import { jsonLength, TextBytes } from '../../src/lib/json-text.ts';

/** Where text is turned into JSON piece by piece. */
const PIECE = 32 << 10;
/** Whole characters, parts of them, what JSON escapes, and bytes that are never UTF-8. */
const SCRAPS = ['a', '\0', '"', '\\', '\n', '\x7f', 'é', '€', '😀', '\u2028', '\ufeff'].map(
  (text) => Buffer.from(text),
);
const BROKEN = [
  [0xff],
  [0xc3],
  [0xe2, 0x82],
  [0xf0, 0x9f, 0x98],
  [0x80],
  [0x80, 0x80, 0x80, 0x80],
  [0xed, 0xa0, 0x80],
  [0xc0, 0xaf],
  [0xf4, 0x90, 0x80, 0x80],
];

const scraps = fc
  .array(fc.constantFrom(...SCRAPS, ...BROKEN.map((bytes) => Buffer.from(bytes))), {
    maxLength: 24,
  })
  .map((parts) => Buffer.concat(parts));
/** Text of which a piece ends somewhere in the scraps. */
const acrossPieces = fc
  .tuple(fc.integer({ min: 0, max: 40 }), scraps)
  .map(([back, bytes]) =>
    Buffer.concat([Buffer.alloc(PIECE - back, 'x'), bytes, Buffer.from('end')]),
  );
const anyBytes = fc.oneof(
  scraps,
  acrossPieces,
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
);

const jsonOf = (text: TextBytes): string => Buffer.concat([...text.json()]).toString('utf8');

describe('text as bytes', () => {
  it('equals the JSON of the whole string', () => {
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        expect(jsonOf(new TextBytes(bytes))).to.equal(JSON.stringify(bytes.toString('utf8')));
        expect(JSON.stringify(new TextBytes(bytes))).to.equal(
          JSON.stringify(bytes.toString('utf8')),
        );
      }),
    );
  });

  it('omits a truncated last character', () => {
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        const expected = JSON.stringify(
          new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true }),
        );
        expect(jsonOf(new TextBytes(bytes, { cut: true }))).to.equal(expected);
      }),
    );
  });

  it('never exceeds its computed length, in whatever pieces it arrived', () => {
    fc.assert(
      fc.property(anyBytes, fc.integer({ min: 1, max: 9 }), (bytes, step) => {
        const inside = Buffer.byteLength(JSON.stringify(bytes.toString('utf8'))) - 2;
        expect(jsonLength(bytes)).to.equal(inside);
        let counted = 0;
        const tail = Math.max(0, bytes.length - 200);
        counted += jsonLength(bytes.subarray(0, tail));
        for (let at = tail; at < bytes.length; at += step)
          counted += jsonLength(bytes.subarray(at, at + step));
        expect(counted).to.be.at.least(inside);
      }),
    );
  });
});

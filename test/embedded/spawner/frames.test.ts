import { expect } from 'chai';
import fc from 'fast-check';
import {
  encodeFrame,
  encodeMessage,
  FRAME_KINDS,
  FrameReader,
  MAX_PAYLOAD,
  type Frame,
} from '../../../src/embedded/spawner/frames.ts';

const read = (chunks: readonly Buffer[]): readonly Frame[] => {
  const reader = new FrameReader();
  return chunks.flatMap((chunk) => [...reader.feed(chunk)]);
};

const cut = (bytes: Buffer, sizes: readonly number[]): readonly Buffer[] => {
  const chunks: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  chunks.push(bytes.subarray(at));
  return chunks;
};

describe('frames', () => {
  it('arrive unchanged in whatever pieces the stream comes, with any content', () => {
    const frame = fc.record({
      kind: fc.constantFrom(...Object.values(FRAME_KINDS)),
      channel: fc.nat(0xffff_ffff),
      payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    });
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 8 }),
        fc.array(fc.nat(40), { maxLength: 60 }),
        (frames, sizes) => {
          const stream = Buffer.concat(
            frames.map(({ kind, channel, payload }) => encodeFrame(kind, channel, payload)),
          );
          expect(
            read(cut(stream, sizes)).map((found) => ({
              ...found,
              payload: Buffer.from(found.payload),
            })),
          ).to.deep.equal(frames);
        },
      ),
    );
  });

  it('cannot be forged by the content of another frame', () => {
    const inner = encodeMessage({ type: 'leave' });
    const frames = read([encodeFrame(FRAME_KINDS.output, 7, Buffer.concat([inner, inner]))]);
    expect(frames.map(({ kind, channel }) => [kind, channel])).to.deep.equal([
      [FRAME_KINDS.output, 7],
    ]);
  });

  it('are refused if they exceed the maximum size or have an unknown kind', () => {
    const long = Buffer.alloc(9);
    long.writeUInt32LE(MAX_PAYLOAD + 1, 0);
    expect(() => read([long])).to.throw('announces');
    const strange = Buffer.from(encodeFrame(FRAME_KINDS.output, 1, Buffer.alloc(1)));
    strange.writeUInt8(200, 4);
    expect(() => read([strange])).to.throw('kind 200');
    expect(() => encodeFrame(FRAME_KINDS.output, 1, Buffer.alloc(MAX_PAYLOAD + 1))).to.throw(
      'too long',
    );
  });
});

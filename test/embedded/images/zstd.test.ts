import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { decompressionOf } from '../../../src/embedded/images/unpacker/decompression.ts';
import { rejection } from '../../support/harness/rejection.ts';

/** One archive, made by the tool `zstd` as one frame, and as two. */
const ARCHIVE = '984ac4e56addd489f348b67348b3bd6f1e5e26b90951435992933cc5c8f20b1c';
const ONE_FRAME =
  'KLUv/QRoTQIAEgMLEbDrfElKoenDBIi1rRxiaE4BBsi1GKDxb1Zce/aDd+SmrtiRzluV3CipU1YKIDC3DvxDXtSn8vkU+px8ZwxgkD1ogOlUtsJuGuI=';
const TWO_FRAMES =
  'KLUv/QRoNQIA8gILEbDrfElKoenDBIi1rRxiaE4BALkWAzT+zYprzw/ekZu6Ykc6b1Vyo6ROWQEJIFC3DvVVPoc6oBLfLg+wyA4aYDqtLZv+cZQotS/9BGhFAAAIAAEA/IMHQrohh08=';

/** Fed in pieces of `size` bytes. */
const unpacked = async (bytes: Buffer, size: number): Promise<Buffer> => {
  const stream = decompressionOf('zstd');
  if (!stream) throw new Error('nothing is to be decompressed');
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  );
  return buffer(
    Readable.from(pieces)
      .on('error', () => {})
      .pipe(stream),
  );
};

describe('layers compressed by zstd', () => {
  for (const [what, text] of [
    ['one frame', ONE_FRAME],
    ['two frames', TWO_FRAMES],
  ] as const) {
    it(`are decompressed from ${what}, in whatever pieces the bytes arrive`, async () => {
      for (const size of [1, 7, 64, 1_000]) {
        expect(
          createHash('sha256')
            .update(await unpacked(Buffer.from(text, 'base64'), size))
            .digest('hex'),
          String(size),
        ).to.equal(ARCHIVE);
      }
    });
  }

  it('are refused if they are truncated or invalid', async () => {
    const whole = Buffer.from(ONE_FRAME, 'base64');
    for (const bytes of [
      whole.subarray(0, -9),
      Buffer.from('no zstd, but something else'),
      Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), Buffer.alloc(64, 0xff)]),
    ]) {
      expect(await rejection(unpacked(bytes, 16))).to.be.instanceOf(Error);
    }
  });
});

import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';

export type Compression = 'none' | 'gzip' | 'zstd';

const CHUNK = 512 << 10;

/** Undefined for uncompressed bytes. */
export const decompressionOf = (compression: Compression): Transform | undefined => {
  if (compression === 'none') return undefined;
  return compression === 'gzip' ? createGunzip({ chunkSize: CHUNK }) : zstdDecompression();
};

/** Node's own (from 22.15 on) drops all frames after the first and accepts a truncated end. */
const zstdDecompression = (): Transform => {
  let complete = true;
  const decompress = new Decompress((chunk, last) => {
    complete = last === true;
    if (chunk.length > 0)
      transform.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  });
  const attempt = (act: () => void, done: (error?: Error) => void): void => {
    try {
      act();
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    done();
  };
  const transform: Transform = new Transform({
    transform: (chunk: Buffer, _, done) =>
      attempt(() => {
        complete = false;
        decompress.push(chunk);
      }, done),
    flush: (done) =>
      attempt(() => {
        if (!complete) decompress.push(new Uint8Array(0), true);
      }, done),
  });
  return transform;
};

import type { Duplex } from 'node:stream';

/** Reads until `length` bytes came; the stream can be read further. */
export const received = async (stream: Duplex, length: number): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= length) break;
  }
  return Buffer.concat(chunks);
};

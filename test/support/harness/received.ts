import type { Duplex } from 'node:stream';

/** What a stream brings, until there are so many bytes. It can be read further then. */
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

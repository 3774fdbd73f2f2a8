import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { extract, type Extract, type ExtractEvents } from 'tar-stream';
import { openPlainFile } from './bounded-file.ts';
import { decompressionOf, type Compression } from './decompression.ts';
import { ImageRefused } from './image-refused.ts';
import type { ImageTree } from './image-tree.ts';
import { layerEntryOf } from './layer-entry.ts';
import type { LayerBlob } from './oci-layout.ts';
import type { Writer } from './writer.ts';

export interface UnpackLimits {
  /** All uncompressed archives together. */
  readonly maxBytes: number;
}

export interface UnpackProgress {
  readonly layer: number;
  readonly layers: number;
  readonly bytes: number;
  readonly total: number;
}

const READ_CHUNK = 512 << 10;
/** Ratio of layers larger than RATIO_FROM_BYTES to their blobs. */
const MAX_RATIO = 250;
const RATIO_FROM_BYTES = 256 << 20;

/**
 * Checks blob and archive in passing, possibly after the layer was written: the caller discards the
 * output on a rejection. Rejects with ImageRefused, or with a system error.
 */
export const unpackLayers = async (
  layers: readonly LayerBlob[],
  into: { readonly tree: ImageTree; readonly writer: Writer; readonly limits: UnpackLimits },
  say: (progress: UnpackProgress) => void,
): Promise<void> => {
  const total = layers.reduce((sum, { size }) => sum + size, 0);
  let read = 0;
  let unpacked = 0;
  for (const [at, layer] of layers.entries()) {
    into.tree.nextLayer();
    const name = `layer ${at + 1}`;
    try {
      await applyLayer(layer, into, {
        read: (bytes) => {
          read += bytes;
          say({ layer: at + 1, layers: layers.length, bytes: read, total });
        },
        unpacked: (bytes, ofLayer) => {
          unpacked += bytes;
          if (unpacked > into.limits.maxBytes)
            throw new ImageRefused(`unpacked, it has more than ${into.limits.maxBytes} bytes`);
          if (ofLayer > RATIO_FROM_BYTES && ofLayer > layer.size * MAX_RATIO)
            throw new ImageRefused(
              `unpacked, it is more than ${MAX_RATIO} times as large as packed`,
            );
        },
      });
    } catch (error) {
      throw error instanceof ImageRefused ? new ImageRefused(`${name}: ${error.message}`) : error;
    }
  }
  await into.writer.flush();
};

interface Counters {
  read(bytes: number): void;
  /** Throws beyond a limit. */
  unpacked(bytes: number, ofLayer: number): void;
}

const applyLayer = async (
  layer: LayerBlob,
  into: { readonly tree: ImageTree; readonly writer: Writer },
  counters: Counters,
): Promise<void> => {
  const blob = createHash('sha256');
  const archive = createHash('sha256');
  const reader = new ArchiveReader(into.tree, into.writer);
  let size = 0;
  const packed = blobOf(layer, (chunk) => {
    blob.update(chunk);
    counters.read(chunk.length);
  });
  for await (const chunk of decompressed(packed, layer.compression)) {
    size += chunk.length;
    counters.unpacked(chunk.length, size);
    archive.update(chunk);
    await reader.take(chunk);
  }
  await reader.end();
  if (`sha256:${blob.digest('hex')}` !== layer.digest)
    throw new ImageRefused('its blob does not match its digest');
  if (`sha256:${archive.digest('hex')}` !== layer.diffId)
    throw new ImageRefused('its archive does not match its digest in the configuration');
};

async function* blobOf(layer: LayerBlob, tap: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  const { handle, size } = await openPlainFile(layer.path, 'its blob');
  try {
    if (size !== layer.size)
      throw new ImageRefused(`its blob has ${size} bytes instead of ${layer.size}`);
    for (let at = 0; at < size;) {
      const { buffer, bytesRead } = await handle.read(
        Buffer.allocUnsafe(READ_CHUNK),
        0,
        Math.min(READ_CHUNK, size - at),
        at,
      );
      if (bytesRead === 0) throw new ImageRefused('its blob became shorter');
      at += bytesRead;
      tap(buffer.subarray(0, bytesRead));
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

async function* decompressed(
  packed: AsyncGenerator<Buffer>,
  compression: Compression,
): AsyncGenerator<Buffer> {
  const inflate = decompressionOf(compression);
  if (!inflate) return yield* packed;
  const fed = pipeline(packed, inflate);
  fed.catch(() => {});
  try {
    yield* inflate;
    await fed;
  } catch (error) {
    if (error instanceof ImageRefused || isOfTheSystem(error)) throw error;
    throw new ImageRefused(`it is not ${compression}, or ends too early`);
  } finally {
    inflate.destroy();
  }
}

const isOfTheSystem = (error: unknown): boolean => error instanceof Error && 'syscall' in error;

class ArchiveReader {
  readonly #tree: ImageTree;
  readonly #writer: Writer;
  readonly #extract: Extract = extract();
  readonly #finished: Promise<void>;
  #failure: Error | undefined;

  constructor(tree: ImageTree, writer: Writer) {
    this.#tree = tree;
    this.#writer = writer;
    this.#extract.on('entry', (...found) => this.#entry(...found));
    this.#finished = new Promise((resolve, reject) => {
      this.#extract.once('finish', () => resolve());
      this.#extract.on('error', (error) =>
        reject(this.#failure ?? new ImageRefused(`it is not a tar archive: ${error.message}`)),
      );
      this.#extract.once('close', () =>
        reject(this.#failure ?? new ImageRefused('it is not a tar archive')),
      );
    });
    this.#finished.catch(() => {});
  }

  async take(chunk: Buffer): Promise<void> {
    await this.#writer.room();
    if (!this.#extract.write(chunk)) {
      await Promise.race([
        this.#finished,
        new Promise<void>((resolve) => {
          this.#extract.once('drain', () => resolve());
        }),
      ]);
    }
    if (this.#failure) throw this.#failure;
  }

  async end(): Promise<void> {
    this.#extract.end(null);
    await this.#finished;
    if (this.#failure) throw this.#failure;
  }

  #entry(...[header, content, next]: ExtractEvents['entry']): void {
    let isFile = false;
    content.on('error', () => {});
    try {
      const entry = layerEntryOf(header);
      for (const step of this.#tree.apply(entry)) this.#writer.step(step);
      isFile = entry.kind === 'file';
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
      this.#extract.destroy(this.#failure);
      return;
    }
    content.on('data', (chunk) => {
      if (isFile && chunk instanceof Uint8Array) this.#writer.content(chunk);
    });
    content.once('end', () => {
      if (isFile) this.#writer.endFile();
      next();
    });
  }
}

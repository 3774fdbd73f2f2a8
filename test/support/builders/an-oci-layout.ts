import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';
import { ownArchitecture } from '../../../src/lib/own-architecture.ts';

export type TarEntry = Partial<Header> & {
  readonly name: string;
  readonly content?: string | Buffer;
};

export interface LayoutLayer {
  readonly bytes: Buffer;
  readonly mediaType?: string;
  /** Digest of the archive; by default the true one. */
  readonly diffId?: string;
  /** A wrong digest. */
  readonly digest?: string;
  readonly size?: number;
}

export interface LayoutParts {
  readonly layers?: readonly LayoutLayer[];
  readonly config?: unknown;
  readonly architecture?: string;
  readonly os?: string;
  readonly tags?: readonly (string | undefined)[];
  readonly manifest?: Readonly<Record<string, unknown>>;
  readonly descriptor?: Readonly<Record<string, unknown>>;
}

export const TAR = 'application/vnd.oci.image.layer.v1.tar';
export const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const CONFIG = 'application/vnd.oci.image.config.v1+json';
export const REF_NAME = 'org.opencontainers.image.ref.name';

export const digestOf = (bytes: Buffer): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export const tarOf = async (entries: readonly TarEntry[]): Promise<Buffer> => {
  const archive = pack();
  for (const { content, ...header } of entries) archive.entry(header, content ?? '');
  archive.finalize();
  return buffer(Readable.from(archive));
};

export const gzipLayer = (archive: Buffer): LayoutLayer => ({
  bytes: gzipSync(archive),
  mediaType: `${TAR}+gzip`,
  diffId: digestOf(archive),
});

export const plainLayer = (archive: Buffer): LayoutLayer => ({ bytes: archive });

/** Writes a layout with one image, valid except for the given parts. Returns its digest. */
export const writeLayout = (folder: string, parts: LayoutParts = {}): string => {
  const blobs = join(folder, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const blob = (bytes: Buffer, digest = digestOf(bytes)): { digest: string; size: number } => {
    writeFileSync(join(blobs, digest.slice(7)), bytes);
    return { digest, size: bytes.length };
  };
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  const layers = (parts.layers ?? []).map(({ bytes, mediaType = TAR, digest, size }) => ({
    mediaType,
    ...blob(bytes, digest),
    ...(size === undefined ? {} : { size }),
  }));
  const config = blob(
    json({
      architecture: parts.architecture ?? ownArchitecture(),
      os: parts.os ?? 'linux',
      config: parts.config,
      rootfs: {
        type: 'layers',
        diff_ids: (parts.layers ?? []).map(({ bytes, diffId }) => diffId ?? digestOf(bytes)),
      },
    }),
  );
  const manifest = blob(
    json({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: { mediaType: CONFIG, ...config },
      layers,
      ...parts.manifest,
    }),
  );
  const tags = parts.tags ?? ['latest'];
  writeFileSync(
    join(folder, 'index.json'),
    json({
      schemaVersion: 2,
      manifests: tags.map((tag) => ({
        mediaType: MANIFEST,
        ...manifest,
        annotations: tag === undefined ? undefined : { [REF_NAME]: tag },
        ...parts.descriptor,
      })),
    }),
  );
  writeFileSync(join(folder, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  return manifest.digest;
};

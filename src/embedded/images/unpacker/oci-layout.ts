import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { ownArchitecture } from '../../../lib/own-architecture.ts';
import { readBounded } from './bounded-file.ts';
import type { Compression } from './decompression.ts';
import { ImageRefused } from './image-refused.ts';
import {
  CONFIG_TYPES,
  ConfigSchema,
  INDEX_TYPES,
  IndexSchema,
  LAYER_TYPES,
  LayoutSchema,
  MANIFEST_TYPES,
  ManifestSchema,
  type Descriptor,
  type ImageConfigDocument,
} from './oci-documents.ts';

export interface LayerBlob {
  readonly path: string;
  readonly digest: string;
  readonly size: number;
  readonly compression: Compression;
  /** Digest of the uncompressed archive. */
  readonly diffId: string;
}

/** Its documents match their digests; its layers are not read yet. */
export interface OciImage {
  /** Identifies the whole image. */
  readonly digest: string;
  readonly config: ImageConfigDocument;
  readonly layers: readonly LayerBlob[];
}

export interface Platform {
  readonly os: string;
  readonly architecture: string;
}

const MAX_DOCUMENT_BYTES = 4 << 20;
const MAX_INDEX_DEPTH = 3;
const REF_NAME = 'org.opencontainers.image.ref.name';

export const thisPlatform = (): Platform => ({
  os: 'linux',
  architecture: ownArchitecture(),
});

/** By tag or digest, or the only image. Throws ImageRefused. */
export const readOciImage = async (
  layout: string,
  wanted: { readonly tag?: string; readonly digest?: string },
  platform: Platform,
): Promise<OciImage> => {
  if (!(await stat(layout).catch(() => undefined))?.isDirectory())
    throw new ImageRefused('the layout does not exist');
  parse(
    LayoutSchema,
    await readBounded(join(layout, 'oci-layout'), 'oci-layout', MAX_DOCUMENT_BYTES),
    'oci-layout',
  );
  const index = parse(
    IndexSchema,
    await readBounded(join(layout, 'index.json'), 'index.json', MAX_DOCUMENT_BYTES),
    'index.json',
  );
  const descriptor = await descend(layout, choose(index.manifests, wanted, platform), platform);
  const manifest = parse(
    ManifestSchema,
    await readBlob(layout, descriptor, 'the manifest'),
    'the manifest',
  );
  if (!CONFIG_TYPES.has(manifest.config.mediaType))
    throw new ImageRefused(`it contains no image to run, but ${shown(manifest.config.mediaType)}`);
  const config = parse(
    ConfigSchema,
    await readBlob(layout, manifest.config, 'the configuration'),
    'the configuration',
  );
  if (config.os !== platform.os || config.architecture !== platform.architecture) {
    throw new ImageRefused(
      `it is for ${shown(`${config.os}/${config.architecture}`)}, and this machine is ` +
        `${platform.os}/${platform.architecture}`,
    );
  }
  const diffIds = config.rootfs.diff_ids;
  if (diffIds.length !== manifest.layers.length)
    throw new ImageRefused(
      `it has ${manifest.layers.length} layers, and digests of ${diffIds.length}`,
    );
  return {
    digest: descriptor.digest,
    config,
    layers: manifest.layers.map((layer, at) =>
      layerBlob(layout, layer, { at, diffId: diffIds[at] ?? '' }),
    ),
  };
};

const layerBlob = (
  layout: string,
  layer: Descriptor,
  { at, diffId }: { readonly at: number; readonly diffId: string },
): LayerBlob => {
  const compression = LAYER_TYPES.get(layer.mediaType);
  if (!compression)
    throw new ImageRefused(
      `layer ${at + 1} has the type ${shown(layer.mediaType)}, which is not supported`,
    );
  return {
    path: blobPath(layout, layer.digest),
    digest: layer.digest,
    size: layer.size,
    compression,
    diffId,
  };
};

/** An entry may name no platform; a later step checks the image's own. */
const choose = (
  all: readonly Descriptor[],
  wanted: { readonly tag?: string; readonly digest?: string },
  platform: Platform,
): Descriptor => {
  const named = all.filter(
    ({ digest, annotations }) =>
      (wanted.digest === undefined || digest === wanted.digest) &&
      (wanted.tag === undefined || annotations?.[REF_NAME] === wanted.tag),
  );
  if (named.length === 0) {
    const { tag, digest } = wanted;
    throw new ImageRefused(
      tag === undefined && digest === undefined
        ? 'the layout contains no image'
        : `the layout contains no image ${tag ?? digest}${tagsOf(all)}`,
    );
  }
  const fitting = named.filter(
    ({ platform: its }) =>
      !its || (its.os === platform.os && its.architecture === platform.architecture),
  );
  if (fitting.length === 0)
    throw new ImageRefused(
      `it has no image for this machine, ${platform.os}/${platform.architecture}`,
    );
  const distinct = new Set(fitting.map(({ digest }) => digest)).size;
  const latest =
    distinct > 1
      ? fitting.find(({ annotations }) => annotations?.[REF_NAME] === 'latest')
      : undefined;
  if (distinct > 1 && wanted.tag === undefined && !latest)
    throw new ImageRefused(`the layout contains several images, so a tag is needed${tagsOf(all)}`);
  return latest ?? fitting[0]!;
};

const tagsOf = (all: readonly Descriptor[]): string => {
  const tags = [...new Set(all.flatMap(({ annotations }) => annotations?.[REF_NAME] ?? []))];
  return tags.length === 0
    ? ''
    : `; it has ${tags.slice(0, 8).map(shown).join(', ')}${tags.length > 8 ? ' and more' : ''}`;
};

const descend = async (
  layout: string,
  from: Descriptor,
  platform: Platform,
): Promise<Descriptor> => {
  let descriptor = from;
  for (let depth = 0; !MANIFEST_TYPES.has(descriptor.mediaType); depth += 1) {
    if (!INDEX_TYPES.has(descriptor.mediaType))
      throw new ImageRefused(
        `it has the type ${shown(descriptor.mediaType)}, which is not supported`,
      );
    if (depth >= MAX_INDEX_DEPTH) throw new ImageRefused('its indexes are nested too deeply');
    const index = parse(IndexSchema, await readBlob(layout, descriptor, 'the index'), 'the index');
    descriptor = choose(index.manifests, {}, platform);
  }
  return descriptor;
};

const readBlob = async (
  layout: string,
  { digest, size }: Descriptor,
  what: string,
): Promise<Buffer> => {
  const bytes = await readBounded(blobPath(layout, digest), what, MAX_DOCUMENT_BYTES);
  if (bytes.length !== size)
    throw new ImageRefused(`${what} has ${bytes.length} bytes instead of ${size}`);
  if (`sha256:${createHash('sha256').update(bytes).digest('hex')}` !== digest)
    throw new ImageRefused(`${what} does not match its digest`);
  return bytes;
};

/** Already validated: it contains no slash. */
const blobPath = (layout: string, digest: string): string =>
  join(layout, 'blobs', 'sha256', digest.slice('sha256:'.length));

const parse = <T>(schema: z.ZodType<T>, bytes: Buffer, what: string): T => {
  let tree: unknown;
  try {
    tree = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new ImageRefused(`${what} is not JSON`);
  }
  const parsed = schema.safeParse(tree);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ImageRefused(`${what}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
};

const shown = (text: string): string =>
  JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);

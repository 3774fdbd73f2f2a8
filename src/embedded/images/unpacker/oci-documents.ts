import { z } from 'zod';

/** OCI image-spec 1.1, and Docker's equivalents. */

const MAX_LAYERS = 256;

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'must be a sha256 digest');
const DescriptorSchema = z.object({
  mediaType: z.string().max(255),
  digest,
  size: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  annotations: z.record(z.string(), z.string()).nullish(),
  platform: z
    .object({ architecture: z.string(), os: z.string(), variant: z.string().optional() })
    .nullish(),
});
export type Descriptor = z.infer<typeof DescriptorSchema>;

export const LayoutSchema = z.object({ imageLayoutVersion: z.literal('1.0.0', 'must be 1.0.0') });

export const IndexSchema = z.object({
  schemaVersion: z.literal(2),
  mediaType: z.string().optional(),
  manifests: z.array(DescriptorSchema).max(1_000),
});

export const ManifestSchema = z.object({
  schemaVersion: z.literal(2),
  mediaType: z.string().optional(),
  config: DescriptorSchema,
  layers: z.array(DescriptorSchema).max(MAX_LAYERS),
});

const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine((value) => !value.includes('\0'), 'must not contain a NUL');
const command = z.array(text(65_536)).max(256).nullish();

export const ConfigSchema = z.object({
  architecture: z.string(),
  os: z.string(),
  variant: z.string().optional(),
  rootfs: z.object({ type: z.literal('layers'), diff_ids: z.array(digest).max(MAX_LAYERS) }),
  config: z
    .object({
      User: text(256).nullish(),
      Env: z.array(text(65_536)).max(512).nullish(),
      Entrypoint: command,
      Cmd: command,
      WorkingDir: text(1_024).nullish(),
    })
    .nullish(),
});
export type ImageConfigDocument = z.infer<typeof ConfigSchema>;

export const INDEX_TYPES: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
]);
export const MANIFEST_TYPES: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
]);
export const CONFIG_TYPES: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
]);
export const LAYER_TYPES: ReadonlyMap<string, 'none' | 'gzip' | 'zstd'> = new Map([
  ['application/vnd.oci.image.layer.v1.tar', 'none'],
  ['application/vnd.oci.image.layer.v1.tar+gzip', 'gzip'],
  ['application/vnd.oci.image.layer.v1.tar+zstd', 'zstd'],
  ['application/vnd.oci.image.layer.nondistributable.v1.tar', 'none'],
  ['application/vnd.oci.image.layer.nondistributable.v1.tar+gzip', 'gzip'],
  ['application/vnd.oci.image.layer.nondistributable.v1.tar+zstd', 'zstd'],
  ['application/vnd.docker.image.rootfs.diff.tar', 'none'],
  ['application/vnd.docker.image.rootfs.diff.tar.gzip', 'gzip'],
]);

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Where Sandpool's own image has the agent. */
const PLACE = 'opt/sandpool/native/launcher';
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const OCI = 'application/vnd.oci.image';

/** Writes an OCI archive of an image that has the agent and nothing else: no shell, no library. */
export const writeAgentImage = (
  { launcher, name }: { readonly launcher: string; readonly name: string },
  archive: string,
): void => {
  const work = mkdtempSync(join(tmpdir(), 'agent-image-'));
  const [tree, layout] = [join(work, 'tree'), join(work, 'layout')];
  try {
    mkdirSync(dirname(join(tree, PLACE)), { recursive: true });
    mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
    copyFileSync(launcher, join(tree, PLACE));
    writeLayout(layout, name, tarOf(tree, ['opt']));
    writeFileSync(archive, tarOf(layout, ['oci-layout', 'index.json', 'blobs']));
  } finally {
    rmSync(work, { recursive: true });
  }
};

const writeLayout = (layout: string, name: string, layer: Buffer): void => {
  const blob = (mediaType: string, content: Buffer | object) => {
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
    const hash = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(layout, 'blobs/sha256', hash), bytes);
    return { mediaType: `${OCI}.${mediaType}`, digest: `sha256:${hash}`, size: bytes.length };
  };
  const platform = { architecture: ARCHITECTURES[process.arch], os: 'linux' };
  const files = blob('layer.v1.tar', layer);
  const config = blob('config.v1+json', {
    ...platform,
    config: {},
    rootfs: { type: 'layers', diff_ids: [files.digest] },
  });
  const manifest = blob('manifest.v1+json', {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config,
    layers: [files],
  });
  const annotations = { 'io.containerd.image.name': name };
  const index = { schemaVersion: 2, manifests: [{ ...manifest, platform, annotations }] };
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index));
  writeFileSync(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
};

const tarOf = (folder: string, names: readonly string[]): Buffer =>
  execFileSync('tar', ['--owner=0', '--group=0', '--numeric-owner', '-C', folder, '-c', ...names], {
    maxBuffer: 64 << 20,
  });

/** The agent, as native/build makes it. */
export const builtAgent = (): string => {
  const launcher = join(import.meta.dirname, '../../native/build-output/launcher');
  readFileSync(launcher); // it says what is missing
  return launcher;
};

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const IMAGE = 'application/vnd.oci.image';
const ARCHITECTURE = { x64: 'amd64' }[process.arch as string] ?? process.arch;

/**
 * Writes an OCI layout with one image, of these tar archives in this order, that runs `command`.
 */
export const writeLayout = (
  folder: string,
  archives: readonly Buffer[],
  command: readonly string[],
): void => {
  const blobs = join(folder, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const blob = (kind: string, bytes: Buffer): object => {
    const digest = digestOf(bytes);
    writeFileSync(join(blobs, digest.slice('sha256:'.length)), bytes);
    return { mediaType: `${IMAGE}.${kind}`, digest, size: bytes.length };
  };
  const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
  const layers = archives.map((archive) => blob('layer.v1.tar+gzip', gzipSync(archive)));
  const config = blob(
    'config.v1+json',
    json({
      architecture: ARCHITECTURE,
      os: 'linux',
      config: { Cmd: command },
      rootfs: { type: 'layers', diff_ids: archives.map(digestOf) },
    }),
  );
  const manifest = blob(
    'manifest.v1+json',
    json({ schemaVersion: 2, mediaType: `${IMAGE}.manifest.v1+json`, config, layers }),
  );
  writeFileSync(
    join(folder, 'index.json'),
    json({
      schemaVersion: 2,
      manifests: [{ ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'latest' } }],
    }),
  );
  writeFileSync(join(folder, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
};

/**
 * An archive with one program of this machine and the libraries that it needs, and nothing else.
 * `staging` is a folder to make and remove.
 */
export const programArchive = (program: string, staging: string): Buffer => {
  const path = execFileSync('which', [program], { encoding: 'utf8' }).trim();
  const libraries = [
    ...execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(/\/[^ \n]+/g),
  ].map(([library]) => library);
  for (const folder of ['usr/bin', 'usr/lib', 'usr/lib64', 'etc', 'tmp'])
    mkdirSync(join(staging, folder), { recursive: true });
  for (const link of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${link}`, join(staging, link));
  for (const [from, to] of [
    [path, `/usr/bin/${program}`] as const,
    ...libraries.map((library) => [library, library] as const),
  ]) {
    mkdirSync(dirname(join(staging, to)), { recursive: true });
    copyFileSync(realpathSync(from), join(staging, to));
  }
  const archive = execFileSync(
    'tar',
    ['-c', '--owner=0', '--group=0', '-C', staging, 'bin', 'lib', 'lib64', 'usr', 'etc', 'tmp'],
    { maxBuffer: 64 * 2 ** 20 },
  );
  rmSync(staging, { recursive: true });
  return archive;
};

const digestOf = (bytes: Buffer): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { programArchive, writeLayout } from '../image-layout.ts';

const MB = 1_000_000;
/**
 * What each layer takes of this machine's own files, and how much of it unpacked: the mix of sizes
 * that images have.
 */
const LAYERS = [
  {
    folders: ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/bin', '/usr/sbin'],
    bytes: 370 * MB,
  },
  {
    folders: [
      '/usr/lib/python3',
      '/usr/lib/python3.11',
      '/usr/lib/node_modules',
      '/usr/include',
      '/usr/local/lib',
    ],
    bytes: 170 * MB,
  },
  { folders: ['/usr/share'], bytes: 60 * MB },
] as const;
const LARGEST_FILE = 40 * MB;

export const image: Figure = {
  name: 'image',
  about: 'an OCI layout of about 200 MB to its first sandbox, against tar -x of its layers',
  run: async (bench) => {
    const layout = join(bench.folder, 'layout');
    bench.say("image: making a layout of this machine's files");
    const archives = [
      programArchive('sleep', join(bench.folder, 'program')),
      ...LAYERS.map(({ folders, bytes }, at) => archiveOf(bench, folders, { bytes, at })),
    ];
    writeLayout(layout, archives, ['/usr/bin/sleep', 'infinity']);
    const blobs = join(layout, 'blobs', 'sha256');
    const layers = readdirSync(blobs)
      .map((name) => join(blobs, name))
      .filter((path) => readFileSync(path).readUInt16BE(0) === 0x1f8b);
    const size = Math.round(layers.reduce((sum, path) => sum + statSync(path).size, 0) / MB);

    const ours = async (): Promise<number> => await firstSandbox(bench, layout);
    const theirs = async (): Promise<number> => {
      const folder = mkdtempSync(join(bench.folder, 'tar-'));
      execFileSync('sync');
      const began = performance.now();
      for (const layer of layers) execFileSync('tar', ['-xzf', layer, '-C', folder]);
      const tookMs = performance.now() - began;
      rmSync(folder, { recursive: true });
      return tookMs;
    };
    await theirs();
    return [
      {
        name: `OCI layout of ${size} MB to its first sandbox`,
        unit: 'ms',
        better: 'less',
        reach: 1.5,
        beyond: 1.1,
        ...(await inPairs(bench, { ours, theirs })),
      },
    ];
  },
};

/**
 * From the request for a pool of one to the moment when that one is idle; the image is not known
 * before.
 */
const firstSandbox = async (bench: Bench, layout: string): Promise<number> => {
  const folder = mkdtempSync(join(bench.folder, 'image-'));
  chmodSync(folder, 0o711);
  const [images, templates, unpacked] = ['images', 'templates', 'unpacked'].map((name) =>
    join(folder, name),
  );
  if (!images || !templates || !unpacked) throw new Error('there are no folders');
  for (const path of [images, templates, unpacked]) mkdirSync(path);
  const template = JSON.parse(readFileSync('config/templates/default.json', 'utf8')) as {
    spec: { containers: { image: string }[]; startupTimeout?: string };
  };
  for (const container of template.spec.containers) container.image = 'oci:layout';
  template.spec.startupTimeout = '5m';
  writeFileSync(join(templates, 'default.json'), JSON.stringify(template));
  const daemon = await Daemon.start(bench.load, [
    '--images-directories',
    images,
    '--images-unpacked-dir',
    unpacked,
    '--templates-dir',
    templates,
  ]);
  try {
    execFileSync('sync');
    renameSync(layout, join(images, 'layout'));
    const began = performance.now();
    await daemon.service.createFullPool('image', 1);
    return performance.now() - began;
  } finally {
    renameSync(join(images, 'layout'), layout);
    await daemon.dispose();
    rmSync(folder, { recursive: true });
  }
};

/** Plain files of the folders, some here and some there, until there are enough. */
const archiveOf = (
  bench: Bench,
  folders: readonly string[],
  { bytes, at }: { readonly bytes: number; readonly at: number },
): Buffer => {
  const file = join(bench.folder, `layer-${at}.tar`);
  let left: number = bytes;
  const files = shuffled(folders.flatMap(filesIn)).filter((path) => {
    const { size } = statSync(path);
    if (size > LARGEST_FILE || size > left) return false;
    left -= size;
    return true;
  });
  execFileSync('tar', ['-cf', file, '--no-recursion', '-C', '/', '-T', '-'], {
    input: files.map((path) => path.slice(1)).join('\n'),
  });
  const archive = readFileSync(file);
  rmSync(file);
  return archive;
};

/** The same order each time. */
const shuffled = (paths: readonly string[]): readonly string[] => {
  const places = new Map(paths.map((path) => [path, createHash('md5').update(path).digest('hex')]));
  return [...paths].sort((a, b) => ((places.get(a) ?? '') < (places.get(b) ?? '') ? -1 : 1));
};

const filesIn = (folder: string): readonly string[] => {
  try {
    return execFileSync('find', [folder, '-xdev', '-type', 'f', '-not', '-name', '*\n*'], {
      encoding: 'utf8',
      maxBuffer: 64 << 20,
    })
      .trim()
      .split('\n');
  } catch {
    return []; // this machine has no such folder
  }
};

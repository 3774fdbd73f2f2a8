import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImageSettings } from '../../../src/embedded/driver/image-settings.ts';
import type {
  ContainerDefinition,
  InstanceDefinition,
} from '../../../src/model/templates/template.ts';
import { programOf } from './built-program.ts';
import { aWatchedDriver, type WatchedDriver } from './a-watched-driver.ts';
import { aDefinition } from '../builders/instance-orders.ts';

/**
 * The loader looks for its cache in this process's temporary folder, and can't make one elsewhere.
 */
export const unpackerCommand = (): readonly string[] => [
  '/usr/bin/env',
  `TMPDIR=${tmpdir()}`,
  ...programOf('embedded/images/unpacker/main'),
];

/** Every uid can pass through them; `remove` deletes them. */
export interface ImageFolders {
  readonly sources: string;
  readonly unpacked: string;
  remove(): void;
}

export const imageFolders = (): ImageFolders => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-images-'));
  chmodSync(folder, 0o755);
  const [sources, unpacked] = [join(folder, 'sources'), join(folder, 'unpacked')];
  for (const path of [sources, unpacked]) {
    mkdirSync(path);
    chmodSync(path, 0o755);
  }
  return {
    sources,
    unpacked,
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
};

export const imageSettings = (
  folders: ImageFolders,
  part: Partial<ImageSettings> = {},
): ImageSettings => ({
  directories: [folders.sources],
  unpackedDir: folders.unpacked,
  maxBytes: 2 ** 30,
  unusedAfterMs: 86_400_000,
  unpackerCommand: unpackerCommand(),
  ...part,
});

export const anImageDriver = async (
  folders: ImageFolders,
  part: Partial<ImageSettings> = {},
): Promise<WatchedDriver> => aWatchedDriver({ images: imageSettings(folders, part) });

/** As rendered from a template with this image. */
export const anImageDefinition = (
  image: string,
  given: NonNullable<ContainerDefinition['given']> = { command: ['sleep', 'infinity'] },
  part: Partial<ContainerDefinition> = {},
): InstanceDefinition => aDefinition({ image, given, argv: [], ...part });

import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { Images } from '../images/images.ts';
import { pathsOf } from '../spawner/protocol.ts';

export interface ImageSettings {
  /** Absolute. Their entries are images. */
  readonly directories: readonly string[];
  /** Absolute; by default as in `pathsOf`. */
  readonly unpackedDir?: string;
  readonly maxBytes: number;
  readonly unusedAfterMs: number;
  /** Runs src/embedded/images/unpacker/main. Paths are absolute. */
  readonly unpackerCommand: readonly string[];
}

export interface ImagesOptions {
  readonly dataDir: string;
  readonly bwrapPath: string;
  readonly clock: Clock;
  readonly log: Log;
  /** If absent, `host` is the only image. */
  readonly images?: ImageSettings;
}

export const imagesOf = ({ dataDir, bwrapPath, clock, log, images }: ImagesOptions): Images =>
  new Images({
    directories: images?.directories ?? [],
    folder: images?.unpackedDir ?? pathsOf(dataDir).images,
    maxBytes: images?.maxBytes ?? 0,
    unusedAfterMs: images?.unusedAfterMs ?? 0,
    unpackerCommand: images?.unpackerCommand ?? [],
    bwrapPath,
    clock,
    log,
  });

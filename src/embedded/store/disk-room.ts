import { statfsSync } from 'node:fs';

export interface DiskRoom {
  /** For users other than root. */
  readonly freeBytes: number;
  readonly bytes: number;
  /** As numbered by statfs. */
  readonly type: number;
  /** `full`: the next commit may fail, which ends the daemon. */
  readonly state: 'enough' | 'low' | 'full';
  readonly text: string;
}

const MIB = 2 ** 20;
/** The shares apply on a small disk. */
const FULL = { bytes: 100 * MIB, share: 0.05 };
const LOW = { bytes: 1_024 * MIB, share: 0.1 };
const LEAST_FILES = 1_000;

export const diskRoom = (folder: string, look: typeof statfsSync = statfsSync): DiskRoom => {
  const { type, bsize, bavail, blocks, files, ffree } = look(folder);
  const [freeBytes, bytes] = [bavail * bsize, blocks * bsize];
  const isBelow = (limit: typeof FULL): boolean =>
    freeBytes < Math.min(limit.bytes, limit.share * bytes);
  const hasFewFiles = files > 0 && ffree < LEAST_FILES;
  return {
    freeBytes,
    bytes,
    type,
    state: hasFewFiles || isBelow(FULL) ? 'full' : isBelow(LOW) ? 'low' : 'enough',
    text: hasFewFiles ? `room for ${ffree} more files` : `${sizeText(freeBytes)} free`,
  };
};

const sizeText = (bytes: number): string =>
  bytes < 1_024 * MIB
    ? `${(bytes / MIB).toFixed(1)} MiB`
    : `${(bytes / (1_024 * MIB)).toFixed(1)} GiB`;

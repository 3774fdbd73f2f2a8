import type { FileKind, FileStat } from '../../contracts/files.ts';

/**
 * As `FORMAT` of common.sh has it; the fraction of the time is not told by every stat, and a time
 * beyond all years as a number alone.
 */
const OWNED = /([0-9a-f]{1,8}) (\d{1,19}) (-?\d{1,20}) (\d{1,10}) (\d{1,10})/.source;
const DATED = / (?:\S+ [\d:]+(?:\.(\d{1,9}))?\S*(?: [+-]\d{4})?|-?\d+(?:\.\d+)?)/.source;
const LINE = new RegExp(OWNED + DATED, 'y');

const KINDS: Readonly<Record<number, FileKind>> = { 0x8: 'file', 0x4: 'folder', 0xa: 'link' };

/** Reads what a name is at a place of a text; `end` is behind it. */
export const readStat = (
  text: string,
  at = 0,
): { readonly stat: FileStat; readonly end: number } | undefined => {
  LINE.lastIndex = at;
  const [whole, raw, size, seconds, uid, gid, fraction = ''] = LINE.exec(text) ?? [];
  if (whole === undefined || raw === undefined) return undefined;
  const mode = Number.parseInt(raw, 16);
  const nanos = BigInt(fraction.padEnd(9, '0').slice(0, 9));
  return {
    stat: {
      kind: KINDS[mode >> 12] ?? 'other',
      size: Number(size),
      mtimeNs: BigInt(seconds ?? 0) * 1_000_000_000n + nanos,
      mode: mode & 0o7777,
      uid: Number(uid),
      gid: Number(gid),
    },
    end: at + whole.length,
  };
};

/**
 * Reads what each of the names is: a line for each that is still there, in their order. Names are
 * any bytes, as latin1.
 */
export const readStats = (
  names: readonly string[],
  text: string,
): ReadonlyMap<string, FileStat> => {
  const stats = new Map<string, FileStat>();
  let at = 0;
  for (const name of names) {
    const read = readStat(text, at);
    if (!read) break;
    const line = ` ${name}\n`;
    if (!text.startsWith(line, read.end)) continue;
    stats.set(name, read.stat);
    at = read.end + line.length;
  }
  return stats;
};

const BILLION = 1_000_000_000n;

/** A version as write.sh compares it: also before 1970 the nanoseconds count forward. */
export const versionWord = ({ size, mtimeNs }: Pick<FileStat, 'size' | 'mtimeNs'>): string => {
  const nanos = ((mtimeNs % BILLION) + BILLION) % BILLION;
  return `${size}:${(mtimeNs - nanos) / BILLION}.${String(nanos).padStart(9, '0')}`;
};

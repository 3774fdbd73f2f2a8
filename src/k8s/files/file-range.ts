import { FileRefused, type ByteRange } from '../../contracts/files.ts';

/** Bytes `start` to `end` (not counted) of a file of that size. Throws FileRefused. */
export const resolvedRange = (
  size: number,
  range: ByteRange | undefined,
): { readonly start: number; readonly end: number } => {
  if (!range) return { start: 0, end: size };
  if ('suffix' in range) {
    if (range.suffix === 0 || size === 0) throw badRange(size);
    return { start: Math.max(size - range.suffix, 0), end: size };
  }
  if (range.start >= size) throw badRange(size);
  return { start: range.start, end: Math.min((range.end ?? size - 1) + 1, size) };
};

const badRange = (size: number): FileRefused =>
  new FileRefused('bad-range', 'the range begins behind the end of the file', size);

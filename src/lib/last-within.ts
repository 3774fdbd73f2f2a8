/** Always includes the last line, if necessary without its start. */
export const lastWithin = <Line extends { readonly text: Buffer }>(
  lines: readonly Line[],
  limitBytes: number,
): readonly Line[] => {
  let bytes = 0;
  let from = lines.length;
  while (from > 0 && bytes + (lines[from - 1]?.text.length ?? 0) + 1 <= limitBytes) {
    from -= 1;
    bytes += (lines[from]?.text.length ?? 0) + 1;
  }
  const last = lines.at(-1);
  if (from === lines.length && last) return [{ ...last, text: last.text.subarray(-limitBytes) }];
  return lines.slice(from);
};

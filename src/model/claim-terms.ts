/** Most variables that a claim gives its sandbox, and most bytes of their names and values. */
export const MOST_VARIABLES = 128;
export const MOST_VARIABLE_BYTES = 64 << 10;

/** Most pairs of metadata that a claim has, and most bytes of their keys and values. */
export const MOST_METADATA = 64;
export const MOST_METADATA_BYTES = 4 << 10;

/** Most files that a claim brings with it, and most bytes of their content. */
export const MOST_FILES = 16;
export const MOST_FILE_BYTES = 256 << 10;

/** A file that is in the sandbox before its claim is answered. */
export interface ClaimFile {
  /** Bytes that `filePathOf` has let pass. */
  readonly path: Buffer;
  readonly content: Buffer;
  /** Permission bits. Absent: those of the file that is replaced, else 0o644. */
  readonly mode?: number;
}

/** Names a variable, as every shell takes it. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** Names and values of a claim's variables, or keys and values of its metadata. */
export type TextPairs = Readonly<Record<string, string>>;

/** Counts the bytes of keys and values in UTF-8. */
export const bytesOfPairs = (pairs: TextPairs): number => {
  let bytes = 0;
  for (const [key, value] of Object.entries(pairs))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  return bytes;
};

/** Tells whether all of `wanted` are among the pairs. */
export const hasPairs = (pairs: TextPairs | undefined, wanted: TextPairs): boolean =>
  Object.entries(wanted).every(
    ([key, value]) => pairs !== undefined && Object.hasOwn(pairs, key) && pairs[key] === value,
  );

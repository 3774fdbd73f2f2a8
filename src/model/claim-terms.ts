/** Most variables of a claim, and most bytes of their names and values. */
export const MOST_VARIABLES = 128;
export const MOST_VARIABLE_BYTES = 64 << 10;

/** Most metadata pairs of a claim, and most bytes of their keys and values. */
export const MOST_METADATA = 64;
export const MOST_METADATA_BYTES = 4 << 10;

/** Most files of a claim, and most bytes of their content. */
export const MOST_FILES = 16;
export const MOST_FILE_BYTES = 256 << 10;

/** A file that is in the sandbox before the claim is answered. */
export interface ClaimFile {
  /** Bytes that `filePathOf` accepted. */
  readonly path: Buffer;
  readonly content: Buffer;
  /** Permission bits. Defaults to those of the replaced file, else 0o644. */
  readonly mode?: number;
}

/** Variable names that every shell accepts. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** Names and values of a claim's variables, or keys and values of its metadata. */
export type TextPairs = Readonly<Record<string, string>>;

/** Number of bytes of keys and values in UTF-8. */
export const bytesOfPairs = (pairs: TextPairs): number => {
  let bytes = 0;
  for (const [key, value] of Object.entries(pairs))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  return bytes;
};

/** Whether the pairs include all of `wanted`. */
export const hasPairs = (pairs: TextPairs | undefined, wanted: TextPairs): boolean =>
  Object.entries(wanted).every(
    ([key, value]) => pairs !== undefined && Object.hasOwn(pairs, key) && pairs[key] === value,
  );

/** Variables, and bytes of their names and values. */
export const MOST_VARIABLES = 128;
export const MOST_VARIABLE_BYTES = 64 << 10;

/** Metadata pairs, and bytes of their keys and values. */
export const MOST_METADATA = 64;
export const MOST_METADATA_BYTES = 4 << 10;

/** Files, and bytes of their content. */
export const MOST_FILES = 16;
export const MOST_FILE_BYTES = 256 << 10;

export interface ClaimFile {
  /** Accepted by `filePathOf`. */
  readonly path: Buffer;
  readonly content: Buffer;
  /** Permission bits. Defaults to those of the replaced file, else 0o644. */
  readonly mode?: number;
}

/** Every shell accepts these names. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

export type TextPairs = Readonly<Record<string, string>>;

/** In UTF-8. */
export const bytesOfPairs = (pairs: TextPairs): number => {
  let bytes = 0;
  for (const [key, value] of Object.entries(pairs))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  return bytes;
};

export const hasPairs = (pairs: TextPairs | undefined, wanted: TextPairs): boolean =>
  Object.entries(wanted).every(
    ([key, value]) => pairs !== undefined && Object.hasOwn(pairs, key) && pairs[key] === value,
  );

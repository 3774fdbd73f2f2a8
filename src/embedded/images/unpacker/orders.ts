/** One order on stdin, lines of JSON on stdout. */
export interface UnpackOrder {
  readonly kind: 'dir' | 'oci';
  /** Absolute. */
  readonly source: string;
  readonly tag?: string;
  readonly digest?: string;
  /** Absolute. The unpacker writes nowhere else. */
  readonly folder: string;
  /** For a layout, its digest. */
  readonly key?: string;
  /** Only for this process. */
  readonly staging: string;
  /** All files together. */
  readonly maxBytes: number;
}

export interface PreparedImage {
  /** Name of its folder. */
  readonly key: string;
  readonly system: readonly string[];
  /** Nothing may be created below these top-level names. */
  readonly taken: readonly string[];
  readonly user: ImageUser;
  readonly config: ImageConfig;
}

export interface ImageUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly workingDir?: string;
}

export type UnpackerMessage =
  /** Sent at least once every few seconds. */
  | {
      readonly type: 'progress';
      readonly layer: number;
      readonly layers: number;
      readonly bytes: number;
      readonly total: number;
    }
  /** False if the image was there before. */
  | { readonly type: 'ready'; readonly image: PreparedImage; readonly unpacked: boolean }
  /** Only `detail` may name paths of the host. */
  | { readonly type: 'failed'; readonly reason: string; readonly detail: string };

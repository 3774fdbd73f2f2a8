/**
 * Describes what the daemon and the unpacker, a process of its own, say to each other: one order on
 * stdin, lines of JSON on stdout.
 */
export interface UnpackOrder {
  readonly kind: 'dir' | 'oci';
  /** Absolute: the folder or the layout. */
  readonly source: string;
  readonly tag?: string;
  readonly digest?: string;
  /** Absolute: where unpacked images lie. Nothing else is written to. */
  readonly folder: string;
  /** The image's name below `folder`; a layout's is its digest. */
  readonly key?: string;
  /** A folder for what is made on the way there; no other process uses it. */
  readonly staging: string;
  /** Bytes of all files together. */
  readonly maxBytes: number;
}

/** An image that sandboxes can be started from. */
export interface PreparedImage {
  /** Its folder's name among the unpacked ones. */
  readonly key: string;
  /** bubblewrap's options for all that the image gives. */
  readonly system: readonly string[];
  /** Names at the top of its file system: nothing may be made below them. */
  readonly taken: readonly string[];
  readonly user: ImageUser;
  readonly config: ImageConfig;
}

export interface ImageUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

/** The part of the image's configuration that is about the main process. */
export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly workingDir?: string;
}

export type UnpackerMessage =
  /** Bytes of compressed layers read so far. At least one in a few seconds. */
  | {
      readonly type: 'progress';
      readonly layer: number;
      readonly layers: number;
      readonly bytes: number;
      readonly total: number;
    }
  /** `unpacked`: it was not there before. */
  | { readonly type: 'ready'; readonly image: PreparedImage; readonly unpacked: boolean }
  /** `detail` may name paths of the host, `reason` does not. */
  | { readonly type: 'failed'; readonly reason: string; readonly detail: string };

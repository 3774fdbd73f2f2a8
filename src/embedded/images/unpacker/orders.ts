/**
 * Messages between the daemon and the unpacker, a separate process: one order on stdin, lines of
 * JSON on stdout.
 */
export interface UnpackOrder {
  readonly kind: 'dir' | 'oci';
  /** Absolute path of the folder or layout. */
  readonly source: string;
  readonly tag?: string;
  readonly digest?: string;
  /** Absolute path for unpacked images. The unpacker writes nowhere else. */
  readonly folder: string;
  /** Name of the image below `folder`; for a layout, its digest. */
  readonly key?: string;
  /** Folder for temporary files, used only by this process. */
  readonly staging: string;
  /** Maximum bytes of all files together. */
  readonly maxBytes: number;
}

/** An image that is ready for sandboxes. */
export interface PreparedImage {
  /** Name of its folder among the unpacked images. */
  readonly key: string;
  /** bubblewrap's options for everything from the image. */
  readonly system: readonly string[];
  /** Top-level names of its file system; nothing may be created below them. */
  readonly taken: readonly string[];
  readonly user: ImageUser;
  readonly config: ImageConfig;
}

export interface ImageUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

/** The part of the image's configuration that concerns the main process. */
export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly workingDir?: string;
}

export type UnpackerMessage =
  /** Bytes of compressed layers read so far. Sent at least once every few seconds. */
  | {
      readonly type: 'progress';
      readonly layer: number;
      readonly layers: number;
      readonly bytes: number;
      readonly total: number;
    }
  /** `unpacked` is true if the image was not there before. */
  | { readonly type: 'ready'; readonly image: PreparedImage; readonly unpacked: boolean }
  /** `detail` may name paths of the host; `reason` does not. */
  | { readonly type: 'failed'; readonly reason: string; readonly detail: string };

import { createHash } from 'node:crypto';
import { mkdir, readdir, rename, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { v7 } from 'uuid';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { parseImageReference, type ImageReference } from './image-reference.ts';
import { findSource, isOpen, SourceRefused, type ImageSource } from './image-sources.ts';
import { removeFolder } from './remove-folder.ts';
import type { PreparedImage } from './unpacker/orders.ts';
import { runUnpacker, UnpackFailed, type UnpackProgress } from './unpacker-process.ts';

export interface ImagesOptions {
  /** Absolute paths, in the order of search. */
  readonly directories: readonly string[];
  /** Absolute. Every uid can pass through it; nobody else writes there. */
  readonly folder: string;
  /** In bytes, unpacked. */
  readonly maxBytes: number;
  readonly unusedAfterMs: number;
  readonly bwrapPath: string;
  readonly unpackerCommand: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** `message` names the image but no path of the host. */
export class ImageUnusable extends Error {
  override readonly name = 'ImageUnusable';
}

interface Known {
  readonly stamp: string;
  readonly image: PreparedImage;
}
interface Failed {
  readonly stamp: string;
  readonly reason: string;
  readonly until: number;
}

const UNFINISHED = 'unfinished-';
const MAX_AT_ONCE = 4;
/** Includes unpackers that only make a ready image durable. */
const MAX_PROCESSES = 16;
const MAX_REMEMBERED = 256;
/** Until another try to unpack a broken image that has not changed. */
const FAILURE_MS = 30_000;
const PROGRESS_MS = 5_000;
const HOUSEKEEPING_MS = 600_000;

/**
 * Images are unpacked once and shared read-only. One is in use while it is held or expected, or a
 * sandbox of it lives; an unused one is removed after `unusedAfterMs`.
 */
export class Images {
  readonly #options: ImagesOptions;
  readonly #known = new Map<string, Known>();
  readonly #failed = new Map<string, Failed>();
  readonly #underWay = new Map<
    string,
    { readonly stamp: string; readonly work: Promise<PreparedImage> }
  >();
  /** Each settles when its unpacker has ended. */
  readonly #processes = new Set<Promise<void>>();
  readonly #expected = new Set<string>();
  readonly #held = new Map<string, number>();
  readonly #stop = new AbortController();
  #expecting: Promise<void> = Promise.resolve();
  #housekeeping: Promise<void> = Promise.resolve();
  #cancel: () => void = () => {};

  constructor(options: ImagesOptions) {
    this.#options = options;
  }

  /** Undefined if the image might work. No I/O. */
  refusalOf(image: string): string | undefined {
    const reference = parseImageReference(image);
    if (!reference)
      return (
        'must be host, dir:NAME, oci:NAME, oci:NAME:TAG or oci:NAME@sha256:DIGEST, not ' +
        `"${image}"`
      );
    if (reference.kind !== 'host' && this.#options.directories.length === 0)
      return 'no folder of images is configured (images.directories), so only "host" can be used';
    return undefined;
  }

  /**
   * To be called once images of living sandboxes are held. Rejects if sandboxes could not reach the
   * folder.
   */
  async start(): Promise<void> {
    if (this.#options.directories.length === 0 || this.#stop.signal.aborted) return;
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o711 });
    if (!(await isOpen(folder)))
      throw new Error(
        `images cannot be unpacked to ${folder}: it, or a folder above it, is not ` +
          'accessible to sandboxes (chmod o+x, or set images.unpackedDir)',
      );
    this.#keepHouse();
    await this.#housekeeping;
  }

  /** Nothing is written afterwards. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancel();
    await Promise.allSettled([
      this.#expecting,
      this.#housekeeping,
      ...[...this.#underWay.values()].map(({ work }) => work),
      ...this.#processes,
    ]);
  }

  /** Prepares the image in the background. Logs a failure; later callers get the error. */
  expect(image: string): void {
    const reference = parseImageReference(image);
    if (
      !reference ||
      reference.kind === 'host' ||
      this.#expected.has(image) ||
      this.#expected.size >= MAX_REMEMBERED
    )
      return;
    this.#expected.add(image);
    // In sequence, so that images needed at once have room.
    this.#expecting = this.#expecting
      .then(() => this.prepare(image))
      .then(
        (ready) => {
          this.release(ready.key);
          return Promise.all(this.#processes).then(() => undefined);
        },
        (error: unknown) =>
          this.#options.log.warn(
            { image, reason: error instanceof Error ? error.message : String(error) },
            'template-image-not-usable',
          ),
      );
  }

  /**
   * Holds the image until it is released. Concurrent calls share the work. Rejects with
   * ImageUnusable.
   */
  async prepare(image: string): Promise<PreparedImage> {
    const reference = parseImageReference(image);
    if (!reference || reference.kind === 'host')
      throw new ImageUnusable(`image ${image}: cannot be prepared`);
    try {
      const source = await findSource(this.#options.directories, reference);
      const known = this.#known.get(image);
      if (known?.stamp === source.stamp) {
        this.hold(known.image.key); // must not be removed during the wait
        if (await this.#isThere(known.image.key)) return known.image;
        this.release(known.image.key);
        this.#known.delete(image);
      }
      const ready = await this.#unpackedOnce(image, reference, source);
      this.hold(ready.key); // too new to be removed
      return ready;
    } catch (error) {
      if (error instanceof SourceRefused) throw this.#unusable(image, error.message);
      throw error;
    }
  }

  hold(key: string): void {
    this.#held.set(key, (this.#held.get(key) ?? 0) + 1);
  }

  release(key: string): void {
    const left = (this.#held.get(key) ?? 0) - 1;
    if (left > 0) this.#held.set(key, left);
    else this.#held.delete(key);
    void this.#touch(key);
  }

  async #unpackedOnce(
    image: string,
    reference: Exclude<ImageReference, { kind: 'host' }>,
    source: ImageSource,
  ): Promise<PreparedImage> {
    const underWay = this.#underWay.get(image);
    if (underWay?.stamp === source.stamp) return underWay.work;
    if (this.#stop.signal.aborted) throw this.#unusable(image, 'the daemon stops');
    const failed = this.#failed.get(image);
    if (failed?.stamp === source.stamp && failed.until > this.#options.clock.now())
      throw this.#unusable(image, failed.reason);
    if (this.#underWay.size >= MAX_AT_ONCE || this.#processes.size >= MAX_PROCESSES)
      throw this.#unusable(image, 'too many other images are being unpacked');
    const work: Promise<PreparedImage> = this.#unpack(image, reference, source).finally(() => {
      if (this.#underWay.get(image)?.work === work) this.#underWay.delete(image);
    });
    this.#underWay.set(image, { stamp: source.stamp, work });
    return work;
  }

  async #unpack(
    image: string,
    reference: Exclude<ImageReference, { kind: 'host' }>,
    source: ImageSource,
  ): Promise<PreparedImage> {
    const { clock, folder, log, maxBytes } = this.#options;
    const startedAt = clock.now();
    const { kind, ...wanted } = reference;
    try {
      const { prepared, ended } = runUnpacker(
        { bwrapPath: this.#options.bwrapPath, command: this.#options.unpackerCommand },
        {
          ...wanted,
          kind,
          source: source.path,
          folder,
          key: keyOfFolder(source.path),
          staging: join(folder, `${UNFINISHED}${v7()}`),
          maxBytes,
        },
        { progress: this.#progressLog(image), signal: this.#stop.signal },
      );
      this.#processes.add(ended);
      void ended.then(() => this.#processes.delete(ended));
      const { image: ready, unpacked } = await prepared;
      remember(this.#known, image, { stamp: source.stamp, image: ready });
      this.#failed.delete(image);
      await this.#touch(ready.key);
      if (unpacked)
        log.info({ image, key: ready.key, durationMs: clock.now() - startedAt }, 'image-unpacked');
      return ready;
    } catch (error) {
      if (!(error instanceof UnpackFailed)) throw error;
      log.warn({ image, reason: error.message, detail: error.detail }, 'image-not-prepared');
      remember(this.#failed, image, {
        stamp: source.stamp,
        reason: error.message,
        until: clock.now() + FAILURE_MS,
      });
      throw this.#unusable(image, error.message);
    }
  }

  #progressLog(image: string): (progress: UnpackProgress) => void {
    let told = this.#options.clock.now();
    return ({ layer, layers, bytes, total }) => {
      const now = this.#options.clock.now();
      if (now - told < PROGRESS_MS) return;
      told = now;
      this.#options.log.info(
        { image, layer, layers, percent: total === 0 ? 100 : Math.floor((bytes / total) * 100) },
        'image-being-unpacked',
      );
    };
  }

  #unusable(image: string, reason: string): ImageUnusable {
    return new ImageUnusable(`image ${image}: ${reason}`);
  }

  #keepHouse(): void {
    const { clock, log } = this.#options;
    if (this.#stop.signal.aborted) return;
    this.#housekeeping = this.#removeUnused().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) log.error({ error }, 'unused-images-not-removed');
    });
    this.#cancel = clock.at(clock.now() + HOUSEKEEPING_MS, () => this.#keepHouse());
  }

  async #removeUnused(): Promise<void> {
    const { clock, folder, log, unusedAfterMs } = this.#options;
    for (const key of await readdir(folder)) {
      if (this.#stop.signal.aborted) return;
      if (key.startsWith(UNFINISHED)) {
        if (this.#underWay.size === 0) await removeFolder(join(folder, key), this.#stop.signal);
        continue;
      }
      if (this.#inUse(key)) {
        await this.#touch(key);
        continue;
      }
      const found = await stat(join(folder, key)).catch(() => undefined);
      if (!found || clock.now() - found.mtimeMs < unusedAfterMs || this.#inUse(key)) continue;
      for (const [image, known] of this.#known)
        if (known.image.key === key) this.#known.delete(image);
      const away = join(folder, `${UNFINISHED}${v7()}`);
      await rename(join(folder, key), away);
      await removeFolder(away, this.#stop.signal);
      log.info({ key }, 'unused-image-removed');
    }
  }

  #inUse(key: string): boolean {
    return (
      this.#held.has(key) ||
      this.#underWay.size > 0 ||
      [...this.#expected].some((image) => this.#known.get(image)?.image.key === key)
    );
  }

  /** Somebody may have removed it by hand. */
  async #isThere(key: string): Promise<boolean> {
    return await stat(join(this.#options.folder, key)).then(
      () => true,
      () => false,
    );
  }

  async #touch(key: string): Promise<void> {
    const now = this.#options.clock.now() / 1_000;
    // the folder may be gone
    await utimes(join(this.#options.folder, key), now, now).catch(() => undefined);
  }
}

/** Whichever template names it. */
const keyOfFolder = (path: string): string =>
  `dir-${createHash('sha256').update(path).digest('hex').slice(0, 32)}`;

const remember = <T>(map: Map<string, T>, key: string, value: T): void => {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) if (map.size > MAX_REMEMBERED) map.delete(oldest);
};

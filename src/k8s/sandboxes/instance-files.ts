import { Readable } from 'node:stream';
import type {
  FileEvent,
  FilePage,
  FilePlace,
  FileStat,
  FolderRequest,
  ListRequest,
  MoveRequest,
  OpenedFile,
  OpenRequest,
  SandboxFiles,
  WatchRequest,
  WriteRequest,
  WrittenFile,
  WrittenTree,
} from '../../contracts/files.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { PodPlace } from '../files/file-scripts.ts';
import type { PodFiles } from '../files/pod-files.ts';
import type { PodTarget } from './pods/pod-presence.ts';

export interface InstanceFilesDeps {
  /** Goes a way into the Pod's container. */
  readonly enter: <T>(
    id: InstanceId,
    container: string | undefined,
    way: (pod: PodTarget) => Promise<T>,
  ) => Promise<T>;
  readonly files: Pick<PodFiles, keyof PodFiles>;
}

/** The files in the Pods of instances. */
export class InstanceFiles implements SandboxFiles {
  readonly provided = true;
  readonly #deps: InstanceFilesDeps;

  constructor(deps: InstanceFilesDeps) {
    this.#deps = deps;
  }

  /** Does nothing: each call opens a channel of its own, by which its script comes. */
  prepare(): void {}

  stat(place: FilePlace, signal: AbortSignal): Promise<FileStat> {
    return this.#at(place, signal, (at) => this.#deps.files.stat(at, signal));
  }

  open(place: FilePlace, request: OpenRequest, signal: AbortSignal): Promise<OpenedFile> {
    return this.#at(place, signal, (at) => this.#deps.files.open(at, request, signal));
  }

  async write(
    place: FilePlace,
    content: Readable | Buffer,
    request: WriteRequest,
    signal: AbortSignal,
  ): Promise<WrittenFile> {
    const stream = 'destroy' in content ? content : streamOf(content);
    try {
      return await this.#at(place, signal, (at) =>
        this.#deps.files.write(at, stream, { request, signal }),
      );
    } catch (error) {
      stream.on('error', () => undefined).destroy();
      throw error;
    }
  }

  remove(
    place: FilePlace,
    request: { readonly recursive: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    return this.#at(place, signal, (at) => this.#deps.files.remove(at, request, signal));
  }

  list(place: FilePlace, request: ListRequest, signal: AbortSignal): Promise<FilePage> {
    return this.#at(place, signal, (at) => this.#deps.files.list(at, request, signal));
  }

  move(place: FilePlace, request: MoveRequest, signal: AbortSignal): Promise<FileStat> {
    return this.#at(place, signal, (at) => this.#deps.files.move(at, request, signal));
  }

  mkdir(place: FilePlace, request: FolderRequest, signal: AbortSignal): Promise<WrittenFile> {
    return this.#at(place, signal, (at) => this.#deps.files.mkdir(at, request, signal));
  }

  watch(
    place: FilePlace,
    request: WatchRequest,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly FileEvent[]>> {
    return this.#at(place, signal, (at) => this.#deps.files.watch(at, request, signal));
  }

  readTree(place: FilePlace, signal: AbortSignal): Promise<Readable> {
    return this.#at(place, signal, (at) => this.#deps.files.readTree(at, signal));
  }

  async writeTree(place: FilePlace, archive: Readable, signal: AbortSignal): Promise<WrittenTree> {
    try {
      return await this.#at(place, signal, (at) => this.#deps.files.writeTree(at, archive, signal));
    } catch (error) {
      archive.on('error', () => undefined).destroy();
      throw error;
    }
  }

  async #at<T>(
    { id, container, path }: FilePlace,
    signal: AbortSignal,
    way: (place: PodPlace) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    return await this.#deps.enter(id, container, (target) => way({ target, path }));
  }
}

const streamOf = (bytes: Buffer): Readable =>
  Readable.from(bytes.length === 0 ? [] : [bytes], { objectMode: false });

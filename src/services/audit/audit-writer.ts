import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditLine } from '../../contracts/audit.ts';
import { auditFileName, auditFiles, HEAD_FILE, headText } from './audit-folder.ts';
import type { ChainEnd } from './audit-chain.ts';

export interface AuditFiles {
  readonly folder: string;
  /** A file that has so many bytes is followed by another. */
  readonly fileBytes: number;
  /** The number of files that are kept; the oldest go. */
  readonly files: number;
}

/**
 * The files of one audit: lines go to the end of the last, all of a call or none. One call at a
 * time. After a call that rejected, the next one begins where the last good one ended.
 */
export class AuditWriter {
  readonly #options: AuditFiles;
  readonly #head: FileHandle;
  #file: FileHandle | undefined;
  #bytes = 0;

  private constructor(options: AuditFiles, head: FileHandle) {
    this.#options = options;
    this.#head = head;
  }

  /** Goes on in the file that is named, as long as it was. */
  static async open(
    options: AuditFiles,
    last: { readonly path: string; readonly bytes: number } | undefined,
  ): Promise<AuditWriter> {
    const writer = new AuditWriter(
      options,
      await open(join(options.folder, HEAD_FILE), 'r+').catch(
        async () => await open(join(options.folder, HEAD_FILE), 'w+', 0o600),
      ),
    );
    if (last) {
      writer.#file = await open(last.path, 'r+');
      writer.#bytes = last.bytes;
    }
    return writer;
  }

  /** In the file, though perhaps not yet on the disk, when it resolves. */
  async append(lines: readonly AuditLine[], firstSeq: number, end: ChainEnd): Promise<void> {
    const file =
      this.#file !== undefined && this.#bytes < this.#options.fileBytes
        ? this.#file
        : await this.#next(firstSeq);
    const text = Buffer.from(`${lines.join('\n')}\n`);
    try {
      for (let at = 0; at < text.length;)
        at += (await file.write(text, at, text.length - at, this.#bytes + at)).bytesWritten;
      await this.#head.write(headText(end), 0, 'latin1');
    } catch (error) {
      // written over by the next call anyway
      await file.truncate(this.#bytes).catch(() => undefined);
      throw error;
    }
    this.#bytes += text.length;
  }

  async sync(): Promise<void> {
    await Promise.all([this.#file?.datasync(), this.#head.datasync()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#file?.close(), this.#head.close()]);
    this.#file = undefined;
  }

  async #next(firstSeq: number): Promise<FileHandle> {
    const { folder, files } = this.#options;
    // One of that name has nothing but what an earlier attempt could not finish.
    const next = await open(join(folder, auditFileName(firstSeq)), 'w', 0o600);
    const full = this.#file;
    this.#file = next;
    this.#bytes = 0;
    try {
      await full?.datasync();
    } finally {
      await full?.close();
    }
    for (const path of auditFiles(folder).slice(0, -files)) await rm(path, { force: true });
    return next;
  }
}

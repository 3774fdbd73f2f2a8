import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditLine } from '../../contracts/audit.ts';
import { auditFileName, auditFiles, HEAD_FILE, headText } from './audit-folder.ts';
import type { ChainEnd } from './audit-chain.ts';

export interface AuditFiles {
  readonly folder: string;
  /** In bytes, after which a new file begins. */
  readonly fileBytes: number;
  readonly files: number;
}

/**
 * Each call appends all of its lines to the last file, or none. One call at a time. After a
 * rejection, the next call overwrites what the failed one left.
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

  /** When it resolves, the lines are in the file, but perhaps not yet on disk. */
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
      // the next call overwrites it anyway
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
    // An existing file of that name only has the remains of a failed attempt.
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

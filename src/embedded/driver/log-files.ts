import { watch, type FSWatcher } from 'node:fs';
import { access, open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import {
  LogsGone,
  type LogBatch,
  type LogRequest,
  type LogTail,
} from '../../contracts/sandbox-driver.ts';
import { lastWithin } from '../../lib/last-within.ts';
import { parseRecords, wholeLines } from './log-records.ts';
import { pipesIn } from '../spawner/sandbox/log-pump.ts';

/** Per read. */
const BLOCK = 64 << 10;
/** If no notification arrives. */
const LOOK_MS = 1_000;
/** Before the first line: there is no folder to watch yet. */
const FIRST_LOOK_MS = 100;
/** After the sandbox is gone. */
const LAST_WORDS_MS = 2_000;
const NEWLINE = 10;

/** Named by the position of its first byte. */
interface LogFile {
  readonly begins: number;
  readonly path: string;
}

interface OpenLogFile extends LogFile {
  readonly handle: FileHandle;
  readonly size: number;
}

interface Follow {
  readonly signal: AbortSignal;
  readonly ended: () => boolean;
}

/**
 * Reads what `launcher logs` writes (native/logs.h). Positions count all bytes of the log, removed
 * ones too.
 */
export class LogFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async tail(id: string, request: LogRequest): Promise<LogTail> {
    const { tailLines, since = 0, limitBytes } = request;
    const log = await Log.open(this.#folder, id);
    try {
      const oldest = new Date(since).toISOString().slice(0, -1);
      for (let size = BLOCK; ; size *= 2) {
        const from = Math.max(log.begin, log.end - size);
        const bytes = await log.read(from, log.end - from);
        // A block may begin in the middle of a record.
        const cut = from === log.begin ? 0 : bytes.indexOf(NEWLINE) + 1;
        const lines = wholeLines(parseRecords(bytes.subarray(cut), from + cut).lines);
        const enough =
          lines.length > tailLines ||
          size >= 2 * limitBytes ||
          (lines[0] !== undefined && lines[0].time < oldest);
        if (!enough && from > log.begin) continue;
        const wanted = lines.filter(({ time }) => time >= oldest);
        const kept = lastWithin(wanted.slice(-tailLines), limitBytes);
        const olderLeft = wanted.length === lines.length && from > 0;
        const isCut = kept.length < wanted.length || kept[0] !== wanted[0];
        return { lines: kept, truncated: isCut || olderLeft, next: String(log.end) };
      }
    } finally {
      await log.close();
    }
  }

  async *follow(
    id: string,
    after: string,
    { signal, ended }: Follow,
  ): AsyncGenerator<LogBatch, void, undefined> {
    const changes = new Changes(join(this.#folder, id), signal);
    let at = /^\d{1,15}$/.test(after) ? Number(after) : 0;
    let lastWords: number | undefined;
    try {
      while (!signal.aborted) {
        changes.begin();
        // Before the read, so that it covers everything written before the end.
        const over =
          ended() &&
          ((await this.#isOver(id)) ||
            (lastWords ??= performance.now() + LAST_WORDS_MS) < performance.now());
        at = yield* this.#from(id, at);
        if (over) return;
        await changes.next(ended() ? FIRST_LOOK_MS : LOOK_MS);
      }
    } finally {
      changes.end();
    }
  }

  /** Returns the end's position. */
  async *#from(id: string, position: number): AsyncGenerator<LogBatch, number, undefined> {
    const log = await Log.open(this.#folder, id);
    try {
      const isKept = position >= log.begin && position <= log.end;
      let at = isKept ? position : log.begin;
      if (!isKept) yield { lines: [], skipped: true };
      for (;;) {
        const { lines, used } = parseRecords(await log.read(at, BLOCK), at);
        if (used === 0) return at;
        at += used;
        if (lines.length > 0) yield { lines, skipped: false };
      }
    } finally {
      await log.close();
    }
  }

  /** Nobody can write, and all output is in the files. */
  async #isOver(id: string): Promise<boolean> {
    return !(await exists(join(pipesIn(this.#folder), id)));
  }
}

const REMOVED =
  'the output of this sandbox was deleted to make room for newer logs; follow the logs of ' +
  'another sandbox while it runs, with GET /v1/sandboxes/{sandboxId}/logs?follow=true';

/** Open files stay readable after they are removed. */
class Log {
  readonly begin: number;
  readonly end: number;
  readonly #files: readonly OpenLogFile[];

  private constructor(files: readonly OpenLogFile[]) {
    this.#files = files;
    this.begin = files[0]?.begins ?? 0;
    const last = files.at(-1);
    this.end = last ? last.begins + last.size : 0;
  }

  /** Rejects with LogsGone if its files were removed to make room. */
  static async open(folder: string, id: string): Promise<Log> {
    for (;;) {
      const listed = await filesOf(join(folder, id));
      if (listed?.length === 0 && (await wasRemoved(folder, id))) throw new LogsGone(REMOVED);
      const files: OpenLogFile[] = [];
      try {
        for (const file of listed ?? []) {
          const handle = await open(file.path, 'r');
          files.push({ ...file, handle, size: 0 });
        }
        return new Log(
          await Promise.all(
            files.map(async (file) => ({ ...file, size: (await file.handle.stat()).size })),
          ),
        );
      } catch (error) {
        for (const { handle } of files) await handle.close();
        // Removed since the listing.
        if (!isAbsent(error)) throw error;
      }
    }
  }

  async read(position: number, length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (const { begins, size, handle } of this.#files) {
      const from = Math.max(position, begins);
      const to = Math.min(position + length, begins + size);
      if (to <= from) continue;
      const { buffer, bytesRead } = await handle.read(
        Buffer.allocUnsafe(to - from),
        0,
        to - from,
        from - begins,
      );
      parts.push(buffer.subarray(0, bytesRead));
    }
    return Buffer.concat(parts);
  }

  async close(): Promise<void> {
    for (const { handle } of this.#files) await handle.close();
  }
}

/** A folder is empty for a moment before its first line. */
const wasRemoved = async (folder: string, id: string): Promise<boolean> =>
  !(await exists(join(pipesIn(folder), id))) && (await filesOf(join(folder, id)))?.length === 0;

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Undefined if the sandbox never printed. */
const filesOf = async (folder: string): Promise<readonly LogFile[] | undefined> => {
  try {
    const names = (await readdir(folder)).filter((name) => /^\d{1,15}$/.test(name)).map(Number);
    return names
      .toSorted((a, b) => a - b)
      .map((begins) => ({ begins, path: join(folder, String(begins)) }));
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
};

const isAbsent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';

class Changes {
  readonly #folder: string;
  readonly #signal: AbortSignal;
  #watcher: FSWatcher | undefined;
  #changed = false;
  #wake: () => void = () => {};

  constructor(folder: string, signal: AbortSignal) {
    this.#folder = folder;
    this.#signal = signal;
  }

  begin(): void {
    this.#changed = false;
    if (this.#watcher) return;
    try {
      this.#watcher = watch(this.#folder, () => {
        this.#changed = true;
        this.#wake();
      });
      this.#watcher.on('error', () => this.end());
    } catch {}
  }

  /** Also on an abort. */
  async next(mostMs: number): Promise<void> {
    if (this.#changed || this.#signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#signal.removeEventListener('abort', done);
        this.#wake = () => {};
        resolve();
      };
      const timer = setTimeout(done, this.#watcher ? mostMs : Math.min(mostMs, FIRST_LOOK_MS));
      this.#signal.addEventListener('abort', done, { once: true });
      this.#wake = done;
    });
  }

  end(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}

import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type {
  AuditEntry,
  AuditLine,
  AuditSink,
  CountedEntry,
  RecentAudit,
} from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { AuditAnchor } from './audit-anchor.ts';
import { CHAIN_START, type ChainEnd, chainLine } from './audit-chain.ts';
import { readAuditTail, readHead } from './audit-folder.ts';
import { type AuditFiles, AuditWriter } from './audit-writer.ts';
import { MinuteLines, whoOf } from './minute-lines.ts';

export interface AuditTrailOptions {
  readonly files: AuditFiles;
  readonly replica: string;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly recent: RecentAudit;
  readonly anchor?: AuditAnchor;
  /** Receives complete lines, each once, after they are in the file. It must not wait. */
  readonly copy?: (text: string) => void;
}

/** In ms. Batches lines into one write, so that a request costs no write of its own. */
export const WRITE_DELAY_MS = 50;
/** In ms, until lines are on disk. */
const SYNC_MS = 1_000;
const AGAIN_MS = 1_000;
const MOST_UNWRITTEN = 10_000;
const WRITTEN_AT_ONCE = 500;
const STOP_MS = 2_000;

/** With pid and start time it identifies a run of the daemon. */
const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();

type Fields = Readonly<Record<string, unknown>>;

export interface AuditCounts {
  readonly written: number;
  readonly lost: number;
  readonly missing: number;
  readonly waiting: number;
  /** In ms; 0 if writing works. */
  readonly unwritableMs: number;
}

/**
 * A chain of lines, in files of a folder that only this process uses. Requests do not wait: lines
 * are in the file about 50 ms later, and on disk within about a second. Up to 10,000 lines wait
 * while writing fails; beyond that, the chain records only their number.
 */
export class AuditTrail implements AuditSink {
  readonly #options: AuditTrailOptions;
  readonly #minute: MinuteLines;
  #writer: AuditWriter | undefined;
  #end: ChainEnd = CHAIN_START;
  #unwritten: Fields[] = [];
  #lost: { count: number; readonly since: number } | undefined;
  #failing: { readonly why: string; readonly since: number } | undefined;
  readonly #counts = { written: 0, lost: 0, missing: 0 };
  #stopped = false;
  #writing: Promise<void> | undefined;
  #syncing: Promise<void> = Promise.resolve();
  #cancelWrite: (() => void) | undefined;
  #cancelSync: (() => void) | undefined;

  constructor(options: AuditTrailOptions) {
    this.#options = options;
    this.#minute = new MinuteLines(options.clock, (line) => {
      this.#push(line);
    });
  }

  /** Names the number of waiting lines. Undefined if lines and anchor are all right. */
  get problem(): string | undefined {
    if (this.#failing === undefined) return this.#options.anchor?.problem;
    const lost = this.#lost ? `, and ${this.#lost.count} are lost` : '';
    return (
      `the audit can't be written: ${this.#failing.why}; ${this.#unwritten.length} lines are ` +
      `waiting${lost}`
    );
  }

  get counts(): AuditCounts {
    return {
      ...this.#counts,
      waiting: this.#unwritten.length,
      unwritableMs: this.#failing ? this.#options.clock.now() - this.#failing.since : 0,
    };
  }

  /**
   * Continues the chain of the folder. Rejects if the folder can't be used. Writes nothing if
   * stopped during the start.
   */
  async start(): Promise<void> {
    const { files, version, recent } = this.#options;
    await mkdir(files.folder, { recursive: true, mode: 0o700 });
    const tail = readAuditTail(files.folder);
    const head = readHead(files.folder);
    const seq = Math.max(tail.end.seq, head?.seq ?? 0, tail.file ? 0 : tail.lastFileSeq);
    const missing = seq - tail.end.seq;
    this.#end = head?.seq === seq && missing > 0 ? head : { ...tail.end, seq };
    this.#counts.missing = Math.max(0, missing);
    const writer = await AuditWriter.open(files, missing > 0 ? undefined : tail.file);
    if (this.#stopped) return await writer.close();
    this.#writer = writer;
    recent.restore(tail.lines);
    this.#push({
      kind: 'begin',
      boot: bootId(),
      version,
      pid: process.pid,
      ...(seq === 0
        ? {}
        : { after: missing > 0 ? 'missing' : tail.endKind === 'end' ? 'end' : 'crash' }),
      ...(missing > 0 ? { missing } : {}),
    });
    await this.#write();
  }

  note(entry: AuditEntry): void {
    if (this.#stopped || (isRefused(entry) && !this.#minute.letIn(entry.caller))) return;
    const { caller, via, requestId, operation, params, target, status, errorCode, replayed } =
      entry;
    this.#push({
      kind: 'write',
      requestId,
      ...(via === undefined ? {} : { via }),
      ...(caller && whoOf(caller)),
      operation,
      ...(params === undefined ? {} : { params }),
      ...(target === undefined ? {} : { target }),
      status,
      ...(errorCode === undefined ? {} : { errorCode }),
      ...(replayed ? { replayed } : {}),
    });
  }

  count(entry: CountedEntry): void {
    if (!this.#stopped) this.#minute.count(entry);
  }

  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Waits at most 2 s for unwritten lines. Idempotent. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    if (!this.#writer) return;
    await this.#writing;
    this.#minute.stop();
    this.#tellOfLost();
    this.#push({ kind: 'end' });
    const { clock, log } = this.#options;
    const until = clock.now() + STOP_MS;
    await this.#write();
    while (this.#unwritten.length > 0 && clock.now() < until) {
      await new Promise<void>((resolve) => {
        clock.at(Math.min(until, clock.now() + AGAIN_MS / 10), resolve);
      });
      await this.#write();
    }
    this.#cancelWrite?.();
    this.#cancelSync?.();
    await this.#syncing;
    if (this.#unwritten.length > 0)
      log.error(
        { lines: this.#unwritten.length, why: this.#failing?.why },
        'audit-end-not-written',
      );
    else await this.#sync();
    await this.#writer.close();
    await this.#options.anchor?.stop();
  }

  #push({ kind, ...fields }: Fields): void {
    const { clock, replica } = this.#options;
    if (this.#unwritten.length >= MOST_UNWRITTEN) {
      this.#lost ??= { count: 0, since: clock.now() };
      this.#lost.count += 1;
      this.#counts.lost += 1;
      return;
    }
    this.#unwritten.push({ time: new Date(clock.now()).toISOString(), replica, kind, ...fields });
    if (!this.#writing) this.#writeAfter(WRITE_DELAY_MS);
  }

  #writeAfter(delayMs: number): void {
    const { clock } = this.#options;
    this.#cancelWrite ??= clock.at(clock.now() + delayMs, () => {
      this.#cancelWrite = undefined;
      void this.#write();
    });
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
    if (this.#unwritten.length > 0 && !this.#stopped)
      this.#writeAfter(this.#failing === undefined ? WRITE_DELAY_MS : AGAIN_MS);
  }

  async #writeAll(): Promise<void> {
    const { log, recent, clock, copy } = this.#options;
    try {
      for (let left = this.#unwritten.length; left > 0; left -= WRITTEN_AT_ONCE) {
        // lines that arrive during the write wait for the next
        const batch = this.#unwritten.slice(0, Math.min(left, WRITTEN_AT_ONCE));
        const { lines, end } = this.#chained(batch);
        await this.#writer?.append(lines, this.#end.seq + 1, end);
        this.#end = end;
        this.#unwritten = this.#unwritten.slice(batch.length);
        this.#counts.written += batch.length;
        recent.add(lines);
        copy?.(`${lines.join('\n')}\n`);
        this.#tellOfLost();
        this.#syncSoon();
      }
      if (this.#failing !== undefined) log.info({ seq: this.#end.seq }, 'audit-written-again');
      this.#failing = undefined;
    } catch (error) {
      if (this.#failing === undefined)
        log.error({ error, lines: this.#unwritten.length }, 'audit-not-written');
      this.#failing = {
        why: error instanceof Error && 'code' in error ? String(error.code) : String(error),
        since: this.#failing?.since ?? clock.now(),
      };
    }
  }

  #chained(batch: readonly Fields[]): {
    readonly lines: readonly AuditLine[];
    readonly end: ChainEnd;
  } {
    let end = this.#end;
    const lines = batch.map((fields) => {
      const next = chainLine(end, fields);
      end = next.end;
      return next.line;
    });
    return { lines, end };
  }

  /** Once there is space, in the position that the lines would have had. */
  #tellOfLost(): void {
    if (!this.#lost || this.#unwritten.length >= MOST_UNWRITTEN) return;
    const { count, since } = this.#lost;
    this.#lost = undefined;
    this.#push({
      kind: 'lost',
      count,
      since: new Date(since).toISOString(),
      why: this.#failing?.why ?? 'too many at once',
    });
  }

  #syncSoon(): void {
    const { clock } = this.#options;
    this.#cancelSync ??= clock.at(clock.now() + SYNC_MS, () => {
      this.#cancelSync = undefined;
      this.#syncing = this.#sync();
    });
  }

  async #sync(): Promise<void> {
    const end = this.#end;
    try {
      await this.#writer?.sync();
      this.#options.anchor?.moved(end);
    } catch (error) {
      this.#options.log.warn({ error }, 'audit-not-synced');
    }
  }
}

/** Entries of local tools, and successes of valid keys, are not refusals. */
const isRefused = ({ caller, via, status }: AuditEntry): boolean =>
  via === undefined && (caller === undefined || status >= 400);

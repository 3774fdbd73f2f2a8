import { MAX_CHUNK } from '../frames.ts';
import { PIECE_BYTES, READ_WINDOW } from '../protocol.ts';
import type { OutputRing, OutputStream } from './output-ring.ts';
import type { ProcessRefusal } from './process-messages.ts';

/** Is read: a process with its kept output. */
export interface ReadProcess {
  readonly ring: OutputRing;
  readonly isLive: boolean;
  leave(reader: OutputReader): void;
  /** The reader moved. */
  look(): void;
}

export interface ReaderEvents {
  /** Returns false while the daemon reads too slowly: nothing more until `resume`. */
  output(stream: OutputStream, bytes: Buffer): boolean;
  position(position: number): void;
  dropped(bytes: number): void;
  /** Once, after the last output: it ended. */
  ended(): void;
  /** Once, instead. */
  lost(refusal: ProcessRefusal): void;
}

/** One reading of a process's output: as much as the daemon granted, in order. */
export class OutputReader {
  readonly paces: boolean;
  readonly #process: ReadProcess;
  readonly #events: ReaderEvents;
  readonly #cursor: { position: number };
  #credit = READ_WINDOW;
  #isBlocked = false;
  #isOver = false;

  constructor(
    process: ReadProcess,
    { from, pace }: { readonly from?: string; readonly pace: boolean },
    events: ReaderEvents,
  ) {
    this.#process = process;
    this.#events = events;
    this.paces = pace;
    this.#cursor = { position: this.#placeOf(from) };
    events.position(this.#cursor.position);
  }

  get position(): number {
    return this.#cursor.position;
  }

  credit(bytes: number): void {
    this.#credit += bytes;
    this.#goOn();
  }

  resume(): void {
    this.#isBlocked = false;
    this.#goOn();
  }

  /** May be repeated. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#process.leave(this);
  }

  lost(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.lost({ kind: 'gone', message: 'the process was removed' });
  }

  /** Sends what there is, as far as it may. */
  pump(): void {
    const { ring } = this.#process;
    while (!this.#isOver && !this.#isBlocked && this.#credit > 0) {
      if (this.#cursor.position < ring.start) {
        this.#credit -= PIECE_BYTES;
        this.#events.dropped(ring.start - this.#cursor.position);
        this.#cursor.position = ring.start;
        continue;
      }
      const piece = ring.read(this.#cursor, Math.min(MAX_CHUNK, this.#credit));
      if (!piece) return this.#endIfOver();
      this.#credit -= piece.bytes.length + PIECE_BYTES;
      if (!this.#events.output(piece.stream, piece.bytes)) this.#isBlocked = true;
    }
  }

  #goOn(): void {
    this.pump();
    if (this.paces && !this.#isOver) this.#process.look();
  }

  #endIfOver(): void {
    if (this.#process.isLive) return;
    this.#isOver = true;
    this.#process.leave(this);
    this.#events.ended();
  }

  #placeOf(from: string | undefined): number {
    const { ring } = this.#process;
    if (from === 'latest') return ring.end;
    const position = from !== undefined && /^\d{1,15}$/.test(from) ? Number(from) : -1;
    return position >= 0 && position <= ring.end ? position : 0;
  }
}

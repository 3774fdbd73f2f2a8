import type { LogLine, LogTail } from '../../contracts/sandbox-driver.ts';
import { lastWithin } from '../../lib/last-within.ts';
import { BEGINNING, placeAfter, placeText, type LogPiece, type LogPlace } from './log-place.ts';

interface Kept extends LogPiece {
  readonly place: LogPlace;
}

export class LogTailWindow {
  readonly #tailLines: number;
  readonly #limitBytes: number;
  readonly #since: string;
  #pieces: Kept[] = [];
  #from = 0;
  #bytes = 0;
  #place = BEGINNING;
  #firstTime = '';
  #leastTime = '';
  truncated = false;
  size = 0;

  /** `since`: ISO 8601 in UTC; ignores earlier lines. */
  constructor({
    tailLines,
    limitBytes,
    since,
  }: {
    readonly tailLines: number;
    readonly limitBytes: number;
    readonly since: string;
  }) {
    this.#tailLines = tailLines;
    this.#limitBytes = limitBytes;
    this.#since = since;
  }

  push(piece: LogPiece): void {
    this.size += piece.text.length;
    this.#firstTime ||= piece.time;
    if (this.#leastTime === '' || piece.time < this.#leastTime) this.#leastTime = piece.time;
    this.#place = placeAfter(this.#place, piece);
    if (piece.time < this.#since) return;
    this.#pieces.push({ ...piece, place: this.#place });
    this.#bytes += piece.text.length + 1;
    for (
      let first = this.#pieces[this.#from];
      first && this.#bytes - first.text.length - 1 >= this.#limitBytes;
      first = this.#pieces[this.#from]
    ) {
      this.#bytes -= first.text.length + 1;
      this.#from += 1;
      this.truncated = true;
    }
    if (this.#from > FORGET_AT) {
      this.#pieces = this.#pieces.slice(this.#from);
      this.#from = 0;
    }
  }

  /** Empty if nothing was pushed. */
  get leastTime(): string {
    return this.#leastTime;
  }

  get place(): LogPlace {
    return this.#place;
  }

  /** Older lines with exactly the same time may be missing, so the position may count too few. */
  get isPlaceUnsure(): boolean {
    return this.#place !== BEGINNING && this.#firstTime === this.#place.time;
  }

  tail(next: string): LogTail {
    const lines = this.#lines();
    const wanted = lastWithin(lines.slice(-this.#tailLines), this.#limitBytes);
    return {
      lines: wanted,
      next,
      truncated: this.truncated || wanted.length < lines.length || wanted[0] !== lines[0],
    };
  }

  #lines(): readonly LogLine[] {
    const lines: LogLine[] = [];
    let parts: Kept[] = [];
    for (const piece of this.#pieces.slice(this.#from)) {
      parts.push(piece);
      if (piece.partial) continue;
      lines.push(joined(parts, piece));
      parts = [];
    }
    const last = parts.at(-1);
    return last ? [...lines, joined(parts, last)] : lines;
  }
}

const FORGET_AT = 1_024;

const joined = (parts: readonly Kept[], { time, partial, place }: Kept): LogLine => ({
  time,
  text:
    parts.length === 1 && parts[0] ? parts[0].text : Buffer.concat(parts.map(({ text }) => text)),
  partial,
  next: placeText(place),
});

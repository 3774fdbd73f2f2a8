import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import type { LogPiece } from './log-place.ts';

const NEWLINE = 10;
const SPACE = 32;
/** A line that is longer is given in parts. */
const LONGEST_TEXT = 64 << 10;
const LONGEST_TIME = '2026-01-31T12:00:00.000000000+02:00'.length;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/**
 * Cuts what `GET …/log?timestamps=true` answers into lines. What has no time the container did not
 * print, and is passed over.
 */
export class LogLines {
  /** Begins a line whose end has not come: fewer bytes than LONGEST_TEXT. */
  readonly #rest = new ByteQueue();
  #restBytes = 0;
  /**
   * The time of the line that is being read in parts; '' where that line is passed over, undefined
   * at the beginning of a line.
   */
  #time: string | undefined;

  push(chunk: Buffer): readonly LogPiece[] {
    const pieces: LogPiece[] = [];
    let bytes = chunk;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
      this.#cut(this.#withRest(bytes.subarray(0, end)), true, pieces);
      bytes = bytes.subarray(end + 1);
    }
    if (this.#restBytes + bytes.length >= LONGEST_TEXT)
      this.#cut(this.#withRest(bytes), false, pieces);
    else this.#keep(bytes);
    return pieces;
  }

  #keep(bytes: Buffer): void {
    this.#rest.push(bytes);
    this.#restBytes += bytes.length;
  }

  #withRest(bytes: Buffer): Buffer {
    if (this.#restBytes === 0) return bytes;
    this.#rest.push(bytes);
    this.#restBytes = 0;
    return this.#rest.takeAll();
  }

  #cut(bytes: Buffer, isWhole: boolean, pieces: LogPiece[]): void {
    let text = bytes;
    if (this.#time === undefined) {
      const space = bytes.subarray(0, LONGEST_TIME + 1).indexOf(SPACE);
      this.#time = space < 0 ? '' : utcOf(bytes.toString('latin1', 0, space));
      text = bytes.subarray(space + 1);
    }
    if (this.#time !== '') pieces.push({ time: this.#time, text, partial: !isWhole });
    if (isWhole) this.#time = undefined;
  }
}

/** '' for what is no time. */
const utcOf = (text: string): string => {
  const [, seconds, fraction = '', zone] = TIME.exec(text) ?? [];
  if (seconds === undefined || zone === undefined) return '';
  const utc =
    zone === 'Z' ? seconds : new Date(`${seconds}${zone}`).toISOString().slice(0, seconds.length);
  return `${utc}.${fraction.padEnd(9, '0')}Z`;
};

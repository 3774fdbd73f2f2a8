export interface LogPiece {
  /** ISO 8601 in UTC, with nanoseconds; these strings sort by time. */
  readonly time: string;
  readonly text: Buffer;
  readonly partial: boolean;
}

/**
 * A position in a log: after all lines before `time`, after `count` lines with exactly that time,
 * and after this many bytes of the next one.
 */
export interface LogPlace {
  readonly time: string;
  readonly count: number;
  readonly bytes: number;
}

export const BEGINNING: LogPlace = { time: '', count: 0, bytes: 0 };

/** Malformed text counts as the beginning. */
export const placeOf = (text: string): LogPlace => {
  const [, time, count, bytes] = PLACE.exec(text) ?? [];
  return time === undefined ? BEGINNING : { time, count: Number(count), bytes: Number(bytes) };
};

export const placeText = ({ time, count, bytes }: LogPlace): string =>
  time === '' ? '0' : `${time}_${count}_${bytes}`;

/**
 * Two streams may write lines out of order by some microseconds; these do not move the position.
 */
export const placeAfter = (place: LogPlace, { time, text, partial }: LogPiece): LogPlace => {
  if (time < place.time) return place;
  const { count, bytes } = time === place.time ? place : BEGINNING;
  return partial
    ? { time, count, bytes: bytes + text.length }
    : { time, count: count + 1, bytes: 0 };
};

/** Filters a log that is read again from the start of the position's second. */
export class LogResumption {
  readonly #from: LogPlace;
  #count = 0;
  #bytes = 0;
  /** The line right before the position has been rotated away. */
  isBroken = false;

  constructor(from: LogPlace) {
    this.#from = from;
  }

  /** Undefined if the piece was delivered before. */
  admit(piece: LogPiece): LogPiece | undefined {
    const { time, count, bytes } = this.#from;
    if (piece.time < time) return undefined;
    if (piece.time > time) {
      this.isBroken ||= this.#count < count;
      return piece;
    }
    if (this.#count > count || (this.#count === count && this.#bytes >= bytes)) return piece;
    const isOfPlace = this.#count === count;
    const given = isOfPlace ? Math.min(piece.text.length, bytes - this.#bytes) : 0;
    this.#bytes += given;
    if (!piece.partial) this.#count += 1;
    if (!isOfPlace || (piece.partial && given === piece.text.length)) return undefined;
    return { ...piece, text: piece.text.subarray(given) };
  }
}

const PLACE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)_(\d{1,9})_(\d{1,15})$/;

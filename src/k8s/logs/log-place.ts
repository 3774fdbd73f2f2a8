/** A line of a Pod's log as kubelet gives it, or a part of a long one. */
export interface LogPiece {
  /** ISO 8601 in UTC, with nanoseconds: such texts are in the order of time. */
  readonly time: string;
  readonly text: Buffer;
  /** The line goes on in the next piece. */
  readonly partial: boolean;
}

/**
 * A place in a log that has no numbers of its own: after all lines before `time`, after `count` of
 * those that have that very time, and after so many bytes of the next one of them.
 */
export interface LogPlace {
  readonly time: string;
  readonly count: number;
  readonly bytes: number;
}

export const BEGINNING: LogPlace = { time: '', count: 0, bytes: 0 };

/** Parses a place; text that is none counts as the beginning. */
export const placeOf = (text: string): LogPlace => {
  const [, time, count, bytes] = PLACE.exec(text) ?? [];
  return time === undefined ? BEGINNING : { time, count: Number(count), bytes: Number(bytes) };
};

export const placeText = ({ time, count, bytes }: LogPlace): string =>
  time === '' ? '0' : `${time}_${count}_${bytes}`;

/**
 * The place after the piece, where it follows this one. Lines that two streams wrote out of order
 * by some microseconds move nothing.
 */
export const placeAfter = (place: LogPlace, { time, text, partial }: LogPiece): LogPlace => {
  if (time < place.time) return place;
  const { count, bytes } = time === place.time ? place : BEGINNING;
  return partial
    ? { time, count, bytes: bytes + text.length }
    : { time, count: count + 1, bytes: 0 };
};

/**
 * Lets through what comes after a place, of a log that is read again from the beginning of that
 * place's second.
 */
export class LogResumption {
  readonly #from: LogPlace;
  #count = 0;
  #bytes = 0;
  /** Whether what stood right before the place is not kept any more. */
  isBroken = false;

  constructor(from: LogPlace) {
    this.#from = from;
  }

  /** The piece, or what is left of it; undefined where it was given before. */
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

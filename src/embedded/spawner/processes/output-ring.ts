import { KEPT_OUTPUT_BYTES } from './bounds.ts';

export type OutputStream = 'stdout' | 'stderr';

/** Memory that a ring has from its start on, whatever else the tenant keeps. */
export const FIRST_BYTES = 4 << 10;
/** Memory is taken in such pieces once a process prints more than a little. */
export const SEGMENT_BYTES = 64 << 10;
/** Changes between the streams that one segment notes. */
const MOST_TURNS = 8_192;
/** As many as hold the promised length, and one that is being written. */
const MOST_SEGMENTS = KEPT_OUTPUT_BYTES / SEGMENT_BYTES + 2;

export interface RingMemory {
  /** Takes so many bytes of memory more, where they may be had. */
  readonly take: (bytes: number) => boolean;
  readonly release: (bytes: number) => void;
}

interface Segment {
  readonly buffer: Buffer;
  /** The position of its first byte. */
  readonly at: number;
  used: number;
  /** Whose its first bytes are, and the offsets at which the other stream takes turns with it. */
  readonly first: OutputStream;
  readonly turns: number[];
}

/** A place in a ring, which one reader moves. */
export interface Cursor {
  position: number;
}

export interface RingPiece {
  readonly stream: OutputStream;
  readonly bytes: Buffer;
}

/**
 * The last of what a process printed, both streams in the order in which they came. Memory is
 * written once, so that a piece that was read may be kept for as long as it is being sent. A
 * position is the number of bytes that were printed before it.
 */
export class OutputRing {
  readonly #memory: RingMemory;
  #segments: Segment[] = [];
  #end = 0;

  /** FIRST_BYTES of the memory are taken already. */
  constructor(memory: RingMemory) {
    this.#memory = memory;
  }

  /** The position behind the last byte. */
  get end(): number {
    return this.#end;
  }

  /** The position of the oldest byte that is kept. */
  get start(): number {
    return this.#segments[0]?.at ?? this.#end;
  }

  append(stream: OutputStream, bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      const tail = this.#tailFor(stream);
      const fits = rest.subarray(0, tail.buffer.length - tail.used);
      tail.buffer.set(fits, tail.used);
      tail.used += fits.length;
      this.#end += fits.length;
      rest = rest.subarray(fits.length);
    }
  }

  /** Reads at most so many bytes of one stream from the cursor on; undefined at the end. */
  read(cursor: Cursor, limit: number): RingPiece | undefined {
    const segment = this.#segmentAt(cursor.position);
    if (!segment) return undefined;
    const offset = cursor.position - segment.at;
    const turn = turnsUntil(segment.turns, offset);
    const until = segment.turns[turn] ?? segment.used;
    const bytes = segment.buffer.subarray(offset, Math.min(until, offset + limit));
    cursor.position += bytes.length;
    return { stream: turn % 2 === 0 ? segment.first : other(segment.first), bytes };
  }

  /** Gives all of its memory back. It is of no more use. */
  clear(): void {
    while (this.#segments.length > 0) this.#dropOldest();
    this.#memory.release(FIRST_BYTES);
  }

  #tailFor(stream: OutputStream): Segment {
    const tail = this.#segments.at(-1);
    if (!tail || tail.used === tail.buffer.length) return this.#grown(stream);
    const last = tail.turns.length % 2 === 0 ? tail.first : other(tail.first);
    if (last === stream) return tail;
    if (tail.turns.length === MOST_TURNS) return this.#grown(stream);
    tail.turns.push(tail.used);
    return tail;
  }

  #grown(stream: OutputStream): Segment {
    while (this.#segments.length > 0 && !this.#hasRoom()) this.#dropOldest();
    const size = this.#segments.length === 0 ? FIRST_BYTES : SEGMENT_BYTES;
    const segment: Segment = {
      buffer: Buffer.allocUnsafeSlow(size),
      at: this.#end,
      used: 0,
      first: stream,
      turns: [],
    };
    this.#segments.push(segment);
    return segment;
  }

  /** Takes the memory of another segment, where what is kept is not long enough without it. */
  #hasRoom(): boolean {
    const keptWithoutOldest = this.#end - (this.#segments[1]?.at ?? this.#end);
    if (keptWithoutOldest >= KEPT_OUTPUT_BYTES || this.#segments.length >= MOST_SEGMENTS)
      return false;
    return this.#memory.take(SEGMENT_BYTES);
  }

  /** The memory of the first one stays taken. */
  #dropOldest(): void {
    const [oldest] = this.#segments.splice(0, 1);
    if (oldest?.buffer.length === SEGMENT_BYTES) this.#memory.release(SEGMENT_BYTES);
  }

  #segmentAt(position: number): Segment | undefined {
    for (let index = this.#segments.length - 1; index >= 0; index -= 1) {
      const segment = this.#segments[index];
      if (segment && segment.at <= position)
        return position < segment.at + segment.used ? segment : undefined;
    }
    return undefined;
  }
}

const other = (stream: OutputStream): OutputStream => (stream === 'stdout' ? 'stderr' : 'stdout');

/** How many of the turns are at the offset or before it. */
const turnsUntil = (turns: readonly number[], offset: number): number => {
  let [low, high] = [0, turns.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((turns[middle] ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
};

import { setTimeout } from 'node:timers/promises';

/** Bounds JSON that others write: an empty list takes two bytes, and far more of memory. */
export interface JsonBounds {
  readonly mostBytes: number;
  /** Commas and opening brackets outside of texts: about one for each value. */
  readonly mostValues: number;
}

const MOST_DEPTH = 256;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACKET_END = 0x5d;
/** Between a bracket and a brace. */
const TO_BRACE = 0x20;

/** Gathers JSON piece by piece. Throws as soon as it is longer, deeper or of more values. */
export class JsonReader {
  readonly #bounds: JsonBounds;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;
  #values = 0;
  #depth = 0;
  #isInText = false;
  #isEscaped = false;

  constructor(bounds: JsonBounds) {
    this.#bounds = bounds;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#bounds.mostBytes) throw new Error('the JSON is too long');
    this.#pieces.push(piece);
    this.#count(piece);
    if (this.#values > this.#bounds.mostValues) throw new Error('the JSON has too many values');
  }

  #count(piece: Buffer): void {
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] ?? 0;
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInText = false;
      } else if (byte === QUOTE) this.#isInText = true;
      else if (byte === COMMA) this.#values += 1;
      else if (byte === BRACKET || byte === BRACKET + TO_BRACE) this.#open();
      else if (byte === BRACKET_END || byte === BRACKET_END + TO_BRACE) this.#depth -= 1;
    }
  }

  #open(): void {
    this.#values += 1;
    this.#depth += 1;
    if (this.#depth > MOST_DEPTH) throw new Error('the JSON is nested too deeply');
  }

  /** Undefined if nothing came. Throws if it is not JSON. */
  value(): unknown {
    const text = Buffer.concat(this.#pieces.splice(0)).toString();
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  }
}

/** Bytes, and values, of an answer beside its items. */
const BASE_BYTES = 64 << 10;
const BASE_VALUES = 8_192;
const ITEM_VALUES = 128;

/** Bounds an answer of so many items, each of so many bytes on the average. */
export const boundsOf = (items: number, itemBytes: number): JsonBounds => ({
  mostBytes: BASE_BYTES + items * itemBytes,
  mostValues: BASE_VALUES + items * ITEM_VALUES,
});

export interface LoopShareTerms {
  /** Resolves after so many ms. */
  readonly rest?: (ms: number) => Promise<unknown>;
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
}

/** Times as long as it worked that somebody then rests: their work is a fifth of the time. */
const REST_TIMES = 4;
/** Milliseconds of work that are not rested for at once. */
const FREE_MS = 20;

/** Gives each of several others, by key, a share of the time of the event loop. */
export class LoopShare {
  readonly #rest: (ms: number) => Promise<unknown>;
  readonly #now: () => number;
  /** When each will have rested for what it worked. */
  readonly #rested = new Map<string, number>();

  constructor({ rest = setTimeout, now = () => performance.now() }: LoopShareTerms = {}) {
    this.#rest = rest;
    this.#now = now;
  }

  /** Works once those of the key have rested. Rejects with what the work throws. */
  async work<T>(key: string, work: () => T): Promise<T> {
    for (let owed = this.#owed(key); owed > 0; owed = this.#owed(key)) await this.#rest(owed);
    const began = this.#now();
    try {
      return work();
    } finally {
      const ended = this.#now();
      const rested = Math.max(this.#rested.get(key) ?? 0, began);
      this.#rested.set(key, rested + (ended - began) * (1 + REST_TIMES));
    }
  }

  /** Milliseconds to rest. */
  #owed(key: string): number {
    return Math.ceil((this.#rested.get(key) ?? 0) - this.#now() - FREE_MS * REST_TIMES);
  }
}

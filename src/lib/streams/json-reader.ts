import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';

/** An empty list takes two bytes of text, and far more memory. */
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
/** Code distance between a bracket and a brace. */
const TO_BRACE = 0x20;
/** At most some ms of parsing. */
const PART_BYTES = 64 << 10;
/** An item is parsed in one step. */
const MOST_ITEM_BYTES = 1 << 20;

export type InTurn = <T>(work: () => T) => Promise<T>;

/** First byte, commas between parts, and end. */
interface LongList {
  readonly cuts: number[];
  end: number;
}

/**
 * Throws as soon as the text is too long, too deep or has too many values, or an item of a list
 * exceeds 1 MiB. Only a top-level list, and lists directly in a top-level object, count as lists.
 */
export class JsonReader {
  readonly #bounds: JsonBounds;
  readonly #pieces: Buffer[] = [];
  readonly #longLists: LongList[] = [];
  /** 1 if the list is the whole value, else 2. */
  #listDepth = 0;
  #list: LongList | undefined;
  #lastComma = 0;
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
    const before = this.#bytes - piece.length;
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] ?? 0;
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInText = false;
      } else if (byte === QUOTE) this.#isInText = true;
      else if (byte === COMMA) this.#comma(before + at);
      else if (byte === BRACKET || byte === BRACKET + TO_BRACE) this.#open(byte, before + at);
      else if (byte === BRACKET_END || byte === BRACKET_END + TO_BRACE) this.#close(before + at);
    }
    if (this.#list && this.#bytes - this.#lastComma > MOST_ITEM_BYTES) throw tooLongItem();
  }

  #comma(at: number): void {
    this.#values += 1;
    if (!this.#list || this.#depth !== this.#listDepth) return;
    this.#item(at);
    const { cuts } = this.#list;
    if (at - (cuts.at(-1) ?? 0) > PART_BYTES) cuts.push(at);
  }

  #item(end: number): void {
    if (end - this.#lastComma > MOST_ITEM_BYTES) throw tooLongItem();
    this.#lastComma = end;
  }

  #open(byte: number, at: number): void {
    this.#values += 1;
    this.#depth += 1;
    if (this.#depth > MOST_DEPTH) throw new Error('the JSON is nested too deeply');
    if (this.#depth === 1) this.#listDepth = byte === BRACKET ? 1 : 2;
    if (this.#depth !== this.#listDepth || byte !== BRACKET) return;
    this.#list = { cuts: [at], end: 0 };
    this.#lastComma = at;
  }

  #close(at: number): void {
    if (this.#list && this.#depth === this.#listDepth) {
      this.#item(at);
      this.#list.end = at;
      if (this.#list.cuts.length > 1) this.#longLists.push(this.#list);
      this.#list = undefined;
    }
    this.#depth -= 1;
  }

  /**
   * Undefined without input. Parses long lists in parts, each in its own turn. Rejects if the input
   * is not JSON.
   */
  async value(inTurn: InTurn): Promise<unknown> {
    if (this.#bytes === 0) return undefined;
    const bytes = await inTurn(() => Buffer.concat(this.#pieces.splice(0)));
    const lists = new Map<unknown, unknown[]>();
    for (const { cuts, end } of this.#longLists) {
      const items: unknown[] = [];
      for (const [n, cut] of cuts.entries())
        await inTurn(() => items.push(...partOf(bytes.subarray(cut + 1, cuts[n + 1] ?? end))));
      lists.set(randomUUID(), items); // random, so the input can't contain it
    }
    return await inTurn(() => withLists(JSON.parse(this.#frame(bytes, [...lists.keys()])), lists));
  }

  /** A mark stands for the items of each long list. */
  #frame(bytes: Buffer, marks: readonly unknown[]): string {
    const frame: string[] = [];
    let from = 0;
    for (const [n, { cuts, end }] of this.#longLists.entries()) {
      frame.push(bytes.toString('utf8', from, (cuts[0] ?? 0) + 1), JSON.stringify(marks[n]));
      from = end;
    }
    return [...frame, bytes.toString('utf8', from)].join('');
  }
}

const tooLongItem = (): Error => new Error('an item of the JSON is too long');

/** Throws if a comma has no item beside it. */
const partOf = (bytes: Buffer): readonly unknown[] => {
  const items = JSON.parse(`[${bytes.toString()}]`) as unknown[];
  if (items.length === 0) throw new SyntaxError('the JSON has a comma without an item');
  return items;
};

const withLists = (value: unknown, lists: ReadonlyMap<unknown, unknown[]>): unknown => {
  if (lists.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return lists.get(value[0]) ?? value;
  for (const [name, each] of Object.entries(value))
    if (Array.isArray(each) && lists.has(each[0]))
      (value as Record<string, unknown>)[name] = lists.get(each[0]);
  return value;
};

/** Beside the items. */
const BASE_BYTES = 64 << 10;
const BASE_VALUES = 8_192;
const ITEM_VALUES = 128;

export const boundsOf = (items: number, itemBytes: number): JsonBounds => ({
  mostBytes: BASE_BYTES + items * itemBytes,
  mostValues: BASE_VALUES + items * ITEM_VALUES,
});

export interface LoopShareTerms {
  readonly rest?: (ms: number) => Promise<unknown>;
  /** Monotonic ms. */
  readonly now?: () => number;
}

/** Limits the work of each key to a fifth of the time. */
const REST_TIMES = 4;
/** Needs no immediate rest. */
const FREE_MS = 20;

/** Limits each key's share of the event loop's time. */
export class LoopShare {
  readonly #rest: (ms: number) => Promise<unknown>;
  readonly #now: () => number;
  /** Each key has then rested for all its work. */
  readonly #rested = new Map<string, number>();

  constructor({ rest = setTimeout, now = () => performance.now() }: LoopShareTerms = {}) {
    this.#rest = rest;
    this.#now = now;
  }

  /** Waits until the key has rested. Rejects with the work's exception. */
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

  /** In ms. */
  #owed(key: string): number {
    return Math.ceil((this.#rested.get(key) ?? 0) - this.#now() - FREE_MS * REST_TIMES);
  }
}

import { randomUUID } from 'node:crypto';
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
/** Bytes of a list that are parsed at once: some milliseconds at the worst. */
const PART_BYTES = 64 << 10;
/** An item is parsed at once. */
const MOST_ITEM_BYTES = 1 << 20;

/** Has each piece of work done in its turn. */
export type InTurn = <T>(work: () => T) => Promise<T>;

/** Offsets of a list that is long: of its first byte, the commas between its parts, and its end. */
interface LongList {
  readonly cuts: number[];
  end: number;
}

/**
 * Gathers JSON piece by piece. Throws as soon as it is longer, deeper or of more values, or an item
 * of its list is longer than 1 MiB. Its lists are those at the top, and in an object at the top.
 */
export class JsonReader {
  readonly #bounds: JsonBounds;
  readonly #pieces: Buffer[] = [];
  readonly #longLists: LongList[] = [];
  /** The depth of the items of a list: 1 where the list is the value itself, otherwise 2. */
  #listDepth = 0;
  /** The list that is being read. */
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
   * Undefined if nothing came. Long lists are parsed in parts, each in a turn of its own. Rejects
   * if it is not JSON.
   */
  async value(inTurn: InTurn): Promise<unknown> {
    if (this.#bytes === 0) return undefined;
    const bytes = await inTurn(() => Buffer.concat(this.#pieces.splice(0)));
    const lists = new Map<unknown, unknown[]>();
    for (const { cuts, end } of this.#longLists) {
      const items: unknown[] = [];
      for (const [n, cut] of cuts.entries())
        await inTurn(() => items.push(...partOf(bytes.subarray(cut + 1, cuts[n + 1] ?? end))));
      lists.set(randomUUID(), items); // nobody else can have written it
    }
    return await inTurn(() => withLists(JSON.parse(this.#frame(bytes, [...lists.keys()])), lists));
  }

  /** Returns the JSON with a mark in place of all items of each long list. */
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

/** Throws where nothing stands beside a comma. */
const partOf = (bytes: Buffer): readonly unknown[] => {
  const items = JSON.parse(`[${bytes.toString()}]`) as unknown[];
  if (items.length === 0) throw new SyntaxError('the JSON has a comma without an item');
  return items;
};

/** Puts each list in the place of its mark. */
const withLists = (value: unknown, lists: ReadonlyMap<unknown, unknown[]>): unknown => {
  if (lists.size === 0 || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return lists.get(value[0]) ?? value;
  for (const [name, each] of Object.entries(value))
    if (Array.isArray(each) && lists.has(each[0]))
      (value as Record<string, unknown>)[name] = lists.get(each[0]);
  return value;
};

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

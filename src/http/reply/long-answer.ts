import { setImmediate } from 'node:timers/promises';
import { Readable } from 'node:stream';
import { TextBytes } from '../../lib/json-text.ts';

/** Shorter answers are not counted: they are few bytes, and as many as there are connections. */
export const LONG_BYTES = 16 << 10;

/** A body of the API whose text may be bytes. */
export type TextAsBytes<Wire> = { readonly [Name in keyof Wire]: Wire[Name] | TextBytes };

/**
 * The body of an answer that holds text of any length as bytes (TextBytes): sent piece by piece
 * where that is long.
 */
export class LongAnswer {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(fields: object) {
    this.fields = { ...fields };
  }

  get isLong(): boolean {
    return Object.values(this.fields).some(
      (value) => value instanceof TextBytes && value.bytes.length > LONG_BYTES,
    );
  }

  toJSON(): object {
    return this.fields;
  }

  /** The JSON, made no faster than it is read, and with a turn of the loop for each piece. */
  stream(): Readable {
    return Readable.from(this.#pieces(), { objectMode: false });
  }

  async *#pieces(): AsyncGenerator<Buffer, void, undefined> {
    let before = '{';
    for (const [name, value] of Object.entries(this.fields)) {
      if (value === undefined) continue;
      yield Buffer.from(`${before}${JSON.stringify(name)}:`);
      before = ',';
      if (!(value instanceof TextBytes)) {
        yield Buffer.from(JSON.stringify(value));
        continue;
      }
      for (const piece of value.json()) {
        yield piece;
        await setImmediate();
      }
    }
    yield Buffer.from('}');
  }
}

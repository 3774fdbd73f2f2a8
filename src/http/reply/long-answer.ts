import { setImmediate } from 'node:timers/promises';
import { Readable } from 'node:stream';
import { TextBytes } from '../../lib/json-text.ts';

/** Shorter answers are not counted: connections bound their number. */
export const LONG_BYTES = 16 << 10;

export type TextAsBytes<Wire> = { readonly [Name in keyof Wire]: Wire[Name] | TextBytes };

/** A body with text of any length as TextBytes. Sent in pieces if long. */
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

  /** Generates JSON no faster than it is read, with a turn of the event loop per piece. */
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

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { Readable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';

/** At most about this many characters. */
export class KeptOutput {
  readonly #most: number;
  #chunks: string[] = [];
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** In the order of arrival. */
  static of(most: number, ...streams: readonly (Readable | null)[]): KeptOutput {
    const kept = new KeptOutput(most);
    for (const stream of streams) {
      const decoder = new StringDecoder('utf8');
      stream?.on('data', (chunk: Buffer | string) => {
        kept.add(typeof chunk === 'string' ? chunk : decoder.write(chunk));
      });
    }
    return kept;
  }

  get text(): string {
    return this.#chunks.join('').slice(-this.#most);
  }

  add(chunk: string): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    // Seldom and then half: a busy process prints thousands of small chunks.
    if (this.#size > 2 * this.#most) {
      const kept = this.text;
      [this.#chunks, this.#size] = [[kept], kept.length];
    }
  }
}

const END_BYTES = 2 ** 16;
const LINE_LENGTH = 400;

/** At most 64 KiB. */
export const endOfFile = (path: string): string => {
  const file = openSync(path, 'r');
  try {
    const end = Buffer.alloc(END_BYTES);
    const from = Math.max(0, fstatSync(file).size - END_BYTES);
    return end.toString('utf8', 0, readSync(file, end, 0, END_BYTES, from));
  } finally {
    closeSync(file);
  }
};

/** Each has at most 400 characters. */
export const lastLinesOf = (text: string, count: number): readonly string[] => {
  const shown = stripVTControlCharacters(text).trimEnd();
  const lines = shown === '' ? [] : shown.split(/\r?\n/);
  return lines.slice(-count).map((line) => line.slice(0, LINE_LENGTH));
};

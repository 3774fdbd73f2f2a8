import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { Readable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';

/** The end of what a process prints, of about so many characters at most. */
export class KeptOutput {
  readonly #most: number;
  #chunks: string[] = [];
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Keeps what these streams bring from now on, in the order of its arrival. */
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
    // Seldom, and then half of it at once: a busy process prints thousands of small chunks.
    if (this.#size > 2 * this.#most) {
      const kept = this.text;
      [this.#chunks, this.#size] = [[kept], kept.length];
    }
  }
}

/** Bytes that `endOfFile` reads. */
const END_BYTES = 2 ** 16;
const LINE_LENGTH = 400;

/** The last 64 KiB of a file. */
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

/** The last lines of a text for an error, each of 400 characters at most, as a terminal shows them. */
export const lastLinesOf = (text: string, count: number): readonly string[] => {
  const shown = stripVTControlCharacters(text).trimEnd();
  const lines = shown === '' ? [] : shown.split(/\r?\n/);
  return lines.slice(-count).map((line) => line.slice(0, LINE_LENGTH));
};

import type { Readable } from 'node:stream';

/** Streamed unchanged. Its headers declare the type. */
export class StreamedAnswer {
  readonly content: Readable;

  constructor(content: Readable) {
    this.content = content;
  }
}

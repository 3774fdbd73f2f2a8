import type { Readable } from 'node:stream';

/** An answer body of any length, streamed unchanged. Its headers declare the type. */
export class StreamedAnswer {
  readonly content: Readable;

  constructor(content: Readable) {
    this.content = content;
  }
}

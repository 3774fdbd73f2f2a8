import type { Readable } from 'node:stream';

/**
 * The body of an answer that is passed on as it comes, of any length; its headers say what it is.
 */
export class StreamedAnswer {
  readonly content: Readable;

  constructor(content: Readable) {
    this.content = content;
  }
}

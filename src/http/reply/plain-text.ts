/**
 * The body of an answer that is no JSON: bytes of text, in UTF-8 as far as whoever wrote them kept
 * to it.
 */
export class PlainText {
  readonly bytes: Buffer;
  readonly mediaType: string;

  constructor(bytes: Buffer, mediaType = 'text/plain') {
    this.bytes = bytes;
    this.mediaType = mediaType;
  }
}

/** The body of an answer that is no JSON: bytes as text/plain, in UTF-8 as far as whoever wrote them kept to it. */
export class PlainText {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

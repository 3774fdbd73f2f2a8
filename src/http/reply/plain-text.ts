/** Usually UTF-8, but sent unchecked. */
export class PlainText {
  readonly bytes: Buffer;
  readonly mediaType: string;

  constructor(bytes: Buffer, mediaType = 'text/plain') {
    this.bytes = bytes;
    this.mediaType = mediaType;
  }
}

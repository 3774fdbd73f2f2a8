/**
 * A frame is the payload's length (u32), a kind (u8) and a channel (u32), little-endian, then the
 * payload. Frames end by length, so a sandbox's output can't imitate one.
 */
export const FRAME_KINDS = { message: 0, output: 1, errors: 2 } as const;
export type FrameKind = (typeof FRAME_KINDS)[keyof typeof FRAME_KINDS];

export const MAX_PAYLOAD = 16 << 20;
/** Small, so that channels take turns. */
export const MAX_CHUNK = 64 << 10;

const HEADER = 9;

export interface Frame {
  readonly kind: FrameKind;
  readonly channel: number;
  readonly payload: Buffer;
}

export const encodeFrame = (kind: FrameKind, channel: number, payload: Uint8Array): Buffer => {
  if (payload.length > MAX_PAYLOAD)
    throw new Error(`a frame of ${payload.length} bytes is too long`);
  const frame = Buffer.allocUnsafe(HEADER + payload.length);
  writeHeader(frame, { kind, channel, length: payload.length });
  frame.set(payload, HEADER);
  return frame;
};

export const encodeHeader = (kind: FrameKind, channel: number, length: number): Buffer => {
  const header = Buffer.allocUnsafe(HEADER);
  writeHeader(header, { kind, channel, length });
  return header;
};

const writeHeader = (
  buffer: Buffer,
  { kind, channel, length }: { kind: FrameKind; channel: number; length: number },
): void => {
  buffer.writeUInt32LE(length, 0);
  buffer.writeUInt8(kind, 4);
  buffer.writeUInt32LE(channel, 5);
};

export const encodeMessage = (message: object): Buffer =>
  encodeFrame(FRAME_KINDS.message, 0, Buffer.from(JSON.stringify(message)));

/** Throws on a malformed frame; the stream is unusable after that. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #size = 0;

  /** Payloads may share the chunk's memory. */
  *feed(chunk: Buffer): Generator<Frame> {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    while (this.#size >= HEADER) {
      const header = this.#front(HEADER);
      const length = header.readUInt32LE(0);
      if (length > MAX_PAYLOAD) throw new Error(`a frame announces ${length} bytes`);
      if (this.#size < HEADER + length) return;
      const frame = this.#front(HEADER + length);
      this.#drop(HEADER + length);
      yield {
        kind: kindOf(frame.readUInt8(4)),
        channel: frame.readUInt32LE(5),
        payload: frame.subarray(HEADER, HEADER + length),
      };
    }
  }

  #front(size: number): Buffer {
    const [first] = this.#chunks;
    if (first && first.length >= size) return first;
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }

  #drop(size: number): void {
    this.#size -= size;
    const rest = this.#front(size).subarray(size);
    this.#chunks = rest.length > 0 ? [rest] : [];
  }
}

const kindOf = (byte: number): FrameKind => {
  for (const kind of Object.values(FRAME_KINDS)) if (kind === byte) return kind;
  throw new Error(`no frame is of kind ${byte}`);
};

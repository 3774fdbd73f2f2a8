const MOST_GATHERED = 64 * 1024;
const HEAD_BYTES = 5;

/** See native/README.md. */
export type AgentFrame = 'H' | 'E' | 'X';
const GATHERED: ReadonlySet<string> = new Set(['H', 'E', 'X', 'K']);

export interface FrameEvents {
  /** 0 if the agent takes the request. */
  readonly greeted: (code: number) => void;
  readonly frame: (type: AgentFrame, payload: Buffer) => void;
  readonly data: (bytes: Buffer) => void;
  readonly rawEnded: () => void;
  readonly malformed: () => void;
}

/** Parses the messages of an agent or holder, in pieces of any size. Buffers at most 64 KiB. */
export class AgentFrames {
  readonly #events: FrameEvents;
  #greeted = false;
  #over = false;
  #raw = false;
  #type = '';
  #left = 0;
  #gathered: Buffer[] = [];
  #bytes = 0;

  constructor(events: FrameEvents) {
    this.#events = events;
  }

  /** Call it from `frame`: the rest of the stream is this number of content bytes. */
  raw(bytes: number): void {
    this.#raw = true;
    this.#left = bytes;
    if (bytes === 0) this.#events.rawEnded();
  }

  stop(): void {
    this.#over = true;
  }

  feed(chunk: Buffer): void {
    let rest = chunk;
    if (!this.#greeted && rest.length > 0) {
      this.#greeted = true;
      this.#events.greeted(rest.readUInt8(0));
      rest = rest.subarray(1);
    }
    while (rest.length > 0 && !this.#over) {
      if (this.#raw || this.#type === 'D') rest = this.#pass(rest);
      else if (this.#type === '') rest = this.#takeHead(rest);
      else rest = this.#takeFrame(rest);
    }
  }

  #pass(rest: Buffer): Buffer {
    const bytes = rest.subarray(0, this.#left);
    this.#left -= bytes.length;
    if (bytes.length > 0) this.#events.data(bytes);
    if (this.#left === 0) {
      this.#type = '';
      if (this.#raw) this.#events.rawEnded();
    }
    // Drops any data after raw content.
    return this.#raw && this.#left === 0 ? EMPTY : rest.subarray(bytes.length);
  }

  #takeHead(rest: Buffer): Buffer {
    const after = this.#gather(rest, HEAD_BYTES);
    if (this.#bytes < HEAD_BYTES) return after;
    const head = this.#taken();
    this.#type = String.fromCharCode(head.readUInt8(0));
    this.#left = head.readUInt32BE(1);
    if (this.#type === 'D') {
      if (this.#left === 0) this.#type = '';
    } else if (!GATHERED.has(this.#type) || this.#left > MOST_GATHERED) this.#events.malformed();
    else if (this.#left === 0) this.#tell();
    return after;
  }

  #takeFrame(rest: Buffer): Buffer {
    const after = this.#gather(rest, this.#left);
    if (this.#bytes === this.#left) this.#tell();
    return after;
  }

  #tell(): void {
    const payload = this.#taken();
    const type = this.#type;
    this.#type = '';
    if (type === 'H' || type === 'E' || type === 'X') this.#events.frame(type, payload);
  }

  #gather(rest: Buffer, size: number): Buffer {
    const wanted = rest.subarray(0, size - this.#bytes);
    this.#gathered.push(wanted);
    this.#bytes += wanted.length;
    return rest.subarray(wanted.length);
  }

  #taken(): Buffer {
    this.#bytes = 0;
    return Buffer.concat(this.#gathered.splice(0));
  }
}

const EMPTY = Buffer.alloc(0);

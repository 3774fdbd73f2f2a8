import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import type { ScriptChannel } from '../streams/script-channel.ts';

const NEWLINE = 10;

/** Reads what a script prints, piece by piece, as its reader asks for it. */
export class ChannelReader {
  readonly #channel: ScriptChannel;
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(channel: ScriptChannel) {
    this.#channel = channel;
    this.#pieces = channel.output[Symbol.asyncIterator]();
  }

  /** The next piece, however long; undefined at the end. */
  async piece(): Promise<Buffer | undefined> {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    if (rest.length > 0) return rest;
    const { done, value } = await this.#pieces.next();
    return done === true ? undefined : value;
  }

  /** The next line, without its end; what is left at the end is one too. */
  async line(limit = 64 << 10): Promise<string> {
    return (await this.until(Buffer.of(NEWLINE), limit)).toString('utf8');
  }

  /** All up to the mark, which is read too. Rejects with OutcomeUnknown beyond so many bytes. */
  async until(mark: Buffer, limit: number): Promise<Buffer> {
    const gathered = new ByteQueue();
    let length = 0;
    /** Ends what was gathered, and may begin the mark. */
    let begun: Buffer = Buffer.alloc(0);
    for (;;) {
      const piece = await this.piece();
      if (piece === undefined) return gathered.takeAll();
      const seen = begun.length === 0 ? piece : Buffer.concat([begun, piece]);
      const at = seen.indexOf(mark);
      if (at >= 0) {
        this.#rest = seen.subarray(at + mark.length);
        const end = length - begun.length + at;
        if (length === 0) return piece.subarray(0, end);
        gathered.push(piece.subarray(0, Math.max(end - length, 0)));
        return gathered.takeAll().subarray(0, end);
      }
      gathered.push(piece);
      length += piece.length;
      if (length > limit) throw new OutcomeUnknown('the sandbox answers more than it may');
      begun = seen.subarray(Math.max(seen.length - mark.length + 1, 0));
    }
  }

  /** All that comes until the end, which is counted as held. */
  async all(limit: number): Promise<Buffer> {
    const pieces = new ByteQueue();
    let length = 0;
    for (let piece = await this.piece(); piece; piece = await this.piece()) {
      pieces.push(piece);
      length += piece.length;
      if (length > limit) throw new OutcomeUnknown('the sandbox answers more than it may');
      this.#channel.hold(length);
    }
    return pieces.takeAll();
  }

  /** Reads no more. */
  async leave(): Promise<void> {
    await this.#pieces.return?.();
  }
}

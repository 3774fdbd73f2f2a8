import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import { CliFailure } from './failure.ts';

/** The echo of the typed line never contains it. */
const MARK = Buffer.from('\x1esandpool\x1e');
const MARK_IN_SHELL = '\\036sandpool\\036';
/** The kernel cuts a line at 4,096 bytes if the shell does not read it yet. */
const MAX_LINE_BYTES = 4_000;
const PLAIN = /[A-Za-z0-9_./ =:,@+-]/;
const MAX_HELD_BYTES = 256 * 1024;

/**
 * Replaces a POSIX shell, so the terminal ends with the command's exit code. Pure ASCII: line
 * editors read no part of it as a key.
 */
export const typedCommand = (argv: readonly string[]): string => {
  const script = `printf '${MARK_IN_SHELL}'; exec ${argv.map(quoted).join(' ')}`;
  const encoded = [...Buffer.from(script)]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return PLAIN.test(character) ? character : `\\0${byte.toString(8).padStart(3, '0')}`;
    })
    .join('');
  const line = ` exec /bin/sh -c "$(printf %b '${encoded}')"\r`;
  if (line.length > MAX_LINE_BYTES) {
    throw new CliFailure('the command is too long for a terminal', [
      'run it without -t, or put it into a script inside the sandbox',
    ]);
  }
  return line;
};

/**
 * Drops greeting, prompt and echo before a typed command's output. `flush` stops waiting and
 * returns the withheld output.
 */
export class OutputAfterMark {
  readonly #held = new ByteQueue();
  #heldBytes = 0;
  /** May be the start of the mark. */
  #begun = Buffer.alloc(0);
  #isOver = false;

  feed(chunk: Buffer): Buffer {
    if (this.#isOver) return chunk;
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    const seen = Buffer.concat([this.#begun, chunk]);
    const at = seen.indexOf(MARK);
    if (at >= 0) {
      this.flush();
      return seen.subarray(at + MARK.length);
    }
    this.#begun = seen.subarray(Math.max(seen.length - MARK.length + 1, 0));
    return this.#heldBytes > MAX_HELD_BYTES ? this.flush() : Buffer.alloc(0);
  }

  flush(): Buffer {
    this.#isOver = true;
    return this.#held.takeAll();
  }
}

const quoted = (argument: string): string => `'${argument.replaceAll("'", "'\\''")}'`;

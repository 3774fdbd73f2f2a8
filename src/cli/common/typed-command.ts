import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import { CliFailure } from './failure.ts';

/**
 * Comes out of the terminal right before the command's own output; no echo of what is typed can
 * look like it.
 */
const MARK = Buffer.from('\x1esandpool\x1e');
const MARK_IN_SHELL = '\\036sandpool\\036';
/** A line that is typed before the shell reads it is cut at 4,096 bytes by the kernel. */
const MAX_LINE_BYTES = 4_000;
const PLAIN = /[A-Za-z0-9_./ =:,@+-]/;
const MAX_HELD_BYTES = 256 * 1024;

/**
 * The line that, typed into a POSIX shell, replaces it by the command, so that the terminal ends
 * with the command's own exit code. It is ASCII whatever the arguments hold, so that no line editor
 * takes any of it for a key.
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
    throw new CliFailure('the command is too long to be typed into a terminal', [
      'run it without -t, or put it into a script inside the sandbox',
    ]);
  }
  return line;
};

/**
 * Drops what a terminal shows before the typed command's own output: greeting, prompt, echo. Feed
 * it the output piece by piece; `flush` gives up waiting for the command and answers what was held
 * back.
 */
export class OutputAfterMark {
  readonly #held = new ByteQueue();
  #heldBytes = 0;
  /** Ends what is held, and may begin the mark. */
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

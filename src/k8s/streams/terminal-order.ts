/**
 * The variables of a terminal as terminal-env.sh reads them, by its own terminal: lines that no
 * terminal cuts or understands. Each begins with what it is: `+` a piece of a variable, `|` one
 * with a line end after it, `%` one in the escapes of printf, `.` the variable is whole, `!` all
 * are. Throws at a NUL.
 */
export const terminalOrder = (env: Readonly<Record<string, string>>): Buffer =>
  Buffer.from(
    `${Object.entries(env)
      .flatMap(([name, value]) => [...piecesOf(`${name}=${value}`), '.'])
      .join('\n')}\n!\n`,
  );

/** Characters of a line: terminals take 4,095 bytes. */
const LONGEST = 500;

// Characters that a terminal may take for a word of its own.
const CONTROL = /[\x01-\x09\x0b-\x1f\x7f]/;

function* piecesOf(text: string): Generator<string> {
  if (text.includes('\0')) throw new Error('a variable holds a NUL');
  const lines = text.split('\n');
  for (const [at, line] of lines.entries()) {
    const pieces = [...line.matchAll(PIECES)].map(([piece]) => piece);
    for (const piece of pieces) yield CONTROL.test(piece) ? `%${escaped(piece)}` : `+${piece}`;
    if (at < lines.length - 1) yield '|';
  }
}

/** Cuts a line between characters, and control characters from the others. */
const PIECES = new RegExp(
  `[\\x01-\\x09\\x0b-\\x1f\\x7f]{1,${LONGEST}}|[^\\x01-\\x1f\\x7f]{1,${LONGEST}}`,
  'gu',
);

const escaped = (piece: string): string =>
  Array.from(piece, (one) => `\\0${one.charCodeAt(0).toString(8).padStart(3, '0')}`).join('');

/**
 * Reads what a terminal's script prints before its command does: the process id, and, where it is
 * given variables, what the terminal echoes of them, up to the line that ends that. Nothing of it
 * is for the client.
 */
export class TerminalHead {
  readonly #until: string | undefined;
  #left = MOST_HEAD;
  #line = '';
  #pid: string | undefined;
  #isOver = false;

  /** `until`: the line that ends the echo; undefined where there is none. */
  constructor(until: string | undefined) {
    this.#until = until;
  }

  /** Once the script has said it. */
  get pid(): string | undefined {
    return this.#pid;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Returns what comes after the head, once that is over. Throws where that takes longer than any
   * shell needs: whose image it is says what /bin/sh is.
   */
  push(bytes: Buffer): Buffer | undefined {
    this.#left -= bytes.length;
    if (this.#left < 0) throw new Error('the shell says something else than it was told to');
    let at = 0;
    while (!this.#isOver) {
      const end = bytes.indexOf(NEWLINE, at);
      this.#line += bytes.toString('latin1', at, end < 0 ? bytes.length : end);
      if (end < 0) return undefined;
      at = end + 1;
      this.#take(this.#line.trim());
      this.#line = '';
    }
    return bytes.subarray(at);
  }

  #take(line: string): void {
    if (this.#pid === undefined) {
      this.#pid = line;
      this.#isOver = this.#until === undefined;
    } else this.#isOver = line === this.#until;
  }
}

/** Most bytes before the output of a terminal: its variables, echoed in escapes, are 512 KiB. */
const MOST_HEAD = 2 << 20;
const NEWLINE = 10;

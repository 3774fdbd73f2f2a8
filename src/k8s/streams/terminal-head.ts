/**
 * Reads what the agent prints before the command of a terminal does: its process id, and where it
 * is given variables, the line that says that it has them. Nothing of it is for the client.
 */
export class TerminalHead {
  readonly #until: string | undefined;
  #left = MOST_HEAD;
  #line = '';
  #pid: string | undefined;
  #isOver = false;

  /** `until`: the line behind the variables; undefined where there are none. */
  constructor(until: string | undefined) {
    this.#until = until;
  }

  /** Once the agent has said it. */
  get pid(): string | undefined {
    return this.#pid;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Returns what comes after the head, once that is over. Throws where that is longer than
   * an agent's.
   */
  push(bytes: Buffer): Buffer | undefined {
    this.#left -= bytes.length;
    if (this.#left < 0) throw new Error('the agent says something else than it was told to');
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

/** Most bytes before the output of a terminal, with those of it that come along. */
const MOST_HEAD = 1 << 20;
const NEWLINE = 10;

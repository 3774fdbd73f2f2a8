/** Chunks of 64 KiB that all streams together read in a turn, and how often there is one. */
export const CHUNKS_PER_TURN = 8;
const TURN_MS = 4;

/** Called when a stream may read so many chunks. */
export type ReadSurplus = (chunks: number) => void;

/**
 * Shares out the reading of what commands print beyond what is kept. It has to be read, or the
 * command would never end; but a command that prints without end must not take the time of starts
 * and of other commands. Streams read in turn, 128 MiB a second together.
 */
export class SurplusTurns {
  readonly #waiting: ReadSurplus[] = [];
  readonly #later: (turn: () => void) => void;
  #isTurnDue = false;

  /** `later` calls back after a moment; absent: after 4 ms. */
  constructor(later: (turn: () => void) => void = (turn) => void setTimeout(turn, TURN_MS)) {
    this.#later = later;
  }

  wait(read: ReadSurplus): void {
    this.#waiting.push(read);
    this.#turnLater();
  }

  #turnLater(): void {
    if (this.#isTurnDue || this.#waiting.length === 0) return;
    this.#isTurnDue = true;
    this.#later(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isTurnDue = false;
    const next = this.#waiting.splice(0, CHUNKS_PER_TURN);
    for (const read of next) read(Math.floor(CHUNKS_PER_TURN / next.length));
    this.#turnLater();
  };
}

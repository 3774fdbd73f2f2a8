/** All streams together; a chunk is 64 KiB. */
export const CHUNKS_PER_TURN = 8;
const TURN_MS = 4;

export type ReadSurplus = (chunks: number) => void;

/**
 * Output beyond the limit must be read, or the command would never end, but must not take the time
 * of others: 128 MiB per second for all. Tenants take turns.
 */
export class SurplusTurns {
  /** By tenant, longest wait first. */
  readonly #waiting = new Map<string, ReadSurplus[]>();
  readonly #later: (turn: () => void) => void;
  #isTurnDue = false;

  /** By default after 4 ms. */
  constructor(later: (turn: () => void) => void = (turn) => void setTimeout(turn, TURN_MS)) {
    this.#later = later;
  }

  wait(read: ReadSurplus, tenant = ''): void {
    const own = this.#waiting.get(tenant);
    if (own) own.push(read);
    else this.#waiting.set(tenant, [read]);
    this.#turnLater();
  }

  #turnLater(): void {
    if (this.#isTurnDue || this.#waiting.size === 0) return;
    this.#isTurnDue = true;
    this.#later(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isTurnDue = false;
    const next = this.#next();
    for (const read of next) read(Math.floor(CHUNKS_PER_TURN / next.length));
    this.#turnLater();
  };

  #next(): readonly ReadSurplus[] {
    const next: ReadSurplus[] = [];
    while (next.length < CHUNKS_PER_TURN) {
      const [first] = this.#waiting;
      if (!first) break;
      const [tenant, own] = first;
      next.push(...own.splice(0, 1));
      this.#waiting.delete(tenant);
      if (own.length > 0) this.#waiting.set(tenant, own);
    }
    return next;
  }
}

/** Milliseconds after which who asks does not wait for an earlier read any more. */
const PATIENCE_MS = 50;

interface Flight {
  /** Settles when the read that is under way is over, or has taken long. */
  readonly givesWay: Promise<void>;
  next: Promise<unknown> | undefined;
}

/**
 * Reads of one thing that come together are one: while a read is under way, all who ask share the
 * next, which begins once that is over, or 50 ms later. So nobody gets what stood before they
 * asked, and however many ask, one read is under way, and few where reads take long.
 */
export class JoinedReads {
  readonly #flights = new Map<string, Flight>();

  /**
   * Resolves with what `read` brings, begun after this call, by this or another caller under the
   * same key. Rejects as that does.
   */
  read<T>(key: string, read: () => Promise<T>): Promise<T> {
    const flight = this.#flights.get(key);
    if (!flight) return this.#begin(key, read);
    // The key says what is read, and so of which type it is.
    return (flight.next ??= flight.givesWay.then(() => this.#begin(key, read))) as Promise<T>;
  }

  #begin<T>(key: string, read: () => Promise<T>): Promise<T> {
    const result = read();
    let isLate = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      isLate = resolve;
    });
    const timer = setTimeout(isLate, PATIENCE_MS);
    const over = result.then(
      () => undefined,
      () => undefined,
    );
    const flight: Flight = { givesWay: Promise.race([over, late]), next: undefined };
    this.#flights.set(key, flight);
    void over.then(() => {
      clearTimeout(timer);
      if (this.#flights.get(key) === flight && !flight.next) this.#flights.delete(key);
    });
    return result;
  }
}

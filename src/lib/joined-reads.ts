/** A new read then no longer waits for the current one. */
const PATIENCE_MS = 50;

interface Flight {
  /** The read ends, or has taken too long. */
  readonly givesWay: Promise<void>;
  next: Promise<unknown> | undefined;
}

/**
 * While a read is in progress, all callers share the next, which begins after it ends, or 50 ms
 * after it began. So no caller gets data from before its call.
 */
export class JoinedReads {
  readonly #flights = new Map<string, Flight>();

  /** Its `read` began after this call, perhaps by another caller with the same key. */
  read<T>(key: string, read: () => Promise<T>): Promise<T> {
    const flight = this.#flights.get(key);
    if (!flight) return this.#begin(key, read);
    // The key determines the data, and so the type.
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

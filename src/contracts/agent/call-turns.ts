import { NotJoinable } from '../sandbox-driver.ts';

const MOST_WAITING = 128;
/** In ms. */
const PATIENCE_MS = 60_000;

/**
 * Each call of a key has its own deadline. Calls behind a hung call are rejected before they begin.
 */
export class CallTurns {
  readonly #patienceMs: number;
  readonly #last = new Map<string, { readonly over: Promise<void>; readonly waiting: number }>();

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  /**
   * Settles like the work. Rejects with NotJoinable if too many calls wait, or too long; with the
   * signal's reason on an abort.
   */
  take<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.#last.get(key);
    const waiting = (before?.waiting ?? 0) + 1;
    if (waiting > MOST_WAITING)
      return Promise.reject(
        new NotJoinable('too many calls are waiting for the sandbox; try again'),
      );
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise<T>((resolve, reject) => {
      let isGivenUp = false;
      const giveUp = (why: unknown): void => {
        isGivenUp = true;
        settle();
        reject(why);
      };
      const abort = (): void => giveUp(signal?.reason);
      const timer = setTimeout(
        () => giveUp(new NotJoinable('the sandbox did not handle this call in time; try again')),
        this.#patienceMs,
      );
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      signal?.addEventListener('abort', abort, { once: true });
      const over = (before?.over ?? Promise.resolve()).then(async () => {
        if (isGivenUp) return;
        settle();
        try {
          resolve(await work());
        } catch (error) {
          reject(error);
        }
      });
      this.#count(key, over, waiting);
    });
  }

  #count(key: string, over: Promise<void>, waiting: number): void {
    this.#last.set(key, { over, waiting });
    void over.then(() => {
      const last = this.#last.get(key);
      if (last?.over === over) this.#last.delete(key);
      else if (last) this.#last.set(key, { ...last, waiting: last.waiting - 1 });
    });
  }
}

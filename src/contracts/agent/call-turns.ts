import { NotJoinable } from '../sandbox-driver.ts';

/** Calls that wait for those before them, of one key. */
const MOST_WAITING = 128;
/** Milliseconds until a call whose turn has not come is given up. */
const PATIENCE_MS = 60_000;

/**
 * Has calls of one key carried out one after the other. Each is bounded by itself; those behind one
 * that hangs are given up, and then nothing of them was begun.
 */
export class CallTurns {
  readonly #patienceMs: number;
  readonly #last = new Map<string, { readonly over: Promise<void>; readonly waiting: number }>();

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  /**
   * Resolves as the work does. Rejects with NotJoinable where too many wait, or the turn does not
   * come in time, and with the signal's reason at an abort before that.
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

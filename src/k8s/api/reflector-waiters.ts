import { ApiUnreachable } from './api-errors.ts';

interface Waiter {
  readonly isSo: () => boolean;
  isHurried: boolean;
  readonly end: (failure?: Error) => void;
}

export interface WaitersDeps {
  readonly of: string;
  readonly hurry: () => void;
}

export class Waiters {
  readonly #deps: WaitersDeps;
  readonly #waiters = new Set<Waiter>();

  constructor(deps: WaitersDeps) {
    this.#deps = deps;
  }

  get areHurried(): boolean {
    return [...this.#waiters].some(({ isHurried }) => isHurried);
  }

  /**
   * After `patienceMs`, makes the API server hurry. Rejects with ApiUnreachable at the deadline.
   */
  async until(
    isSo: () => boolean,
    {
      what,
      deadlineMs,
      patienceMs,
    }: { readonly what: string; readonly deadlineMs: number; readonly patienceMs?: number },
  ): Promise<void> {
    if (isSo()) return;
    await new Promise<void>((resolve, reject) => {
      const end = (failure?: Error): void => {
        clearTimeout(timer);
        clearTimeout(impatience);
        this.#waiters.delete(waiter);
        if (failure) reject(failure);
        else resolve();
      };
      const waiter: Waiter = { isSo, end, isHurried: false };
      const timer = setTimeout(() => {
        end(new ApiUnreachable(`${this.#deps.of}: ${what} not reached within the deadline`));
      }, deadlineMs);
      const impatience =
        patienceMs === undefined
          ? undefined
          : setTimeout(() => {
              waiter.isHurried = true;
              this.#deps.hurry();
            }, patienceMs);
      this.#waiters.add(waiter);
    });
  }

  look(): void {
    for (const waiter of this.#waiters) if (waiter.isSo()) waiter.end();
  }

  end(failure: Error): void {
    for (const waiter of this.#waiters) waiter.end(failure);
  }
}

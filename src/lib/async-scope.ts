import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * A value that what is done for one request knows, along the chain of asynchronous calls, by Node's
 * own means; free before the first one.
 */
export class AsyncScope<T> {
  readonly #storage = new AsyncLocalStorage<{ value: T | undefined }>();

  /**
   * Runs `work` with the value: what it does until it has settled knows that; what it leaves
   * behind, which may serve others, does not.
   */
  async within(value: T, work: () => Promise<void>): Promise<void> {
    const held: { value: T | undefined } = { value };
    try {
      await this.#storage.run(held, work);
    } finally {
      held.value = undefined;
    }
  }

  current(): T | undefined {
    return this.#storage.getStore()?.value;
  }
}

import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * A value that all work for one request can read, along the chain of asynchronous calls
 * (AsyncLocalStorage). Costs nothing before its first use.
 */
export class AsyncScope<T> {
  readonly #storage = new AsyncLocalStorage<{ value: T | undefined }>();

  /**
   * Runs `work` with the value, which `work` sees until it settles. Work that it leaves behind,
   * which may serve other requests, does not see the value.
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

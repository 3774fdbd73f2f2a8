import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Readable along the chain of asynchronous calls (AsyncLocalStorage). Costs nothing before its
 * first use.
 */
export class AsyncScope<T> {
  readonly #storage = new AsyncLocalStorage<{ value: T | undefined }>();

  /** `work` sees the value until it settles. Work that it leaves behind does not. */
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

import { AsyncLocalStorage } from 'node:async_hooks';
import type { OngoingTrace, TraceScope } from '../contracts/tracing.ts';

/** Along the chain of asynchronous calls, by Node's own means. */
export class AsyncTraceScope implements TraceScope {
  readonly #storage = new AsyncLocalStorage<{ trace: OngoingTrace | undefined }>();

  async within(trace: OngoingTrace, work: () => Promise<void>): Promise<void> {
    const held: { trace: OngoingTrace | undefined } = { trace };
    try {
      await this.#storage.run(held, work);
    } finally {
      held.trace = undefined; // timers and background work that it began go on
    }
  }

  current(): OngoingTrace | undefined { return this.#storage.getStore()?.trace; }
}

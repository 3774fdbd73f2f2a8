import { unavailable } from '../../../../model/refusals.ts';

/**
 * Ends the streams that are open when the daemon stops: their last frame says `unavailable`, and
 * their clients go on elsewhere.
 */
export class OpenStreams {
  readonly #open = new Set<AbortController>();
  #isStopping = false;

  /** Serves a stream under a signal of its own, which aborts with its client's, and by `stop`. */
  async within<T>(client: AbortSignal, serve: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const ending = new AbortController();
    const leave = (): void => ending.abort(client.reason);
    client.addEventListener('abort', leave, { once: true });
    if (client.aborted) leave();
    this.#open.add(ending);
    if (this.#isStopping) end(ending);
    try {
      return await serve(ending.signal);
    } finally {
      this.#open.delete(ending);
      client.removeEventListener('abort', leave);
    }
  }

  stop(): void {
    this.#isStopping = true;
    for (const each of this.#open) end(each);
  }
}

const end = (stream: AbortController): void =>
  stream.abort(unavailable('the daemon is stopping; connect again'));

/**
 * Notices where lines of a followed log do not come though they are there: kubelets lose track of a
 * log at times as they rotate it, and links die. A log that is only quiet keeps its link: one that
 * is opened anew can't tell whether the file before the newest had more.
 */
export class LogSilence {
  readonly #afterMs: number;
  readonly #hasMore: () => Promise<boolean>;
  readonly #missed = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** Which wait it is, as one may be over before it is known whether there is more. */
  #wait = 0;

  /** `hasMore` looks, past the link, whether there is more than what came; it must not reject. */
  constructor(afterMs: number, hasMore: () => Promise<boolean>) {
    this.#afterMs = afterMs;
    this.#hasMore = hasMore;
  }

  /** Aborts when lines are missed. */
  get missed(): AbortSignal {
    return this.#missed.signal;
  }

  /** Lines are waited for from now on. */
  begin(): void {
    this.end();
    this.#timer = setTimeout(() => {
      void this.#look();
    }, this.#afterMs).unref();
  }

  /** Lines came, or nobody waits for them. */
  end(): void {
    clearTimeout(this.#timer);
    this.#wait += 1;
  }

  async #look(): Promise<void> {
    const wait = this.#wait;
    const hasMore = await this.#hasMore();
    if (wait !== this.#wait) return;
    if (hasMore) this.#missed.abort();
    else this.begin();
  }
}

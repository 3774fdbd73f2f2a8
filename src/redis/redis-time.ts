/**
 * Redis' clock as this process last saw it, carried on by its own monotonic clock: setting the
 * machine's clock does not move it. `unknown` until the first answer.
 */
export class RedisTime {
  readonly #monotonic: () => number;
  #offset: number | undefined;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** ms since the epoch; undefined while Redis was never asked. */
  now(): number | undefined {
    return this.#offset === undefined ? undefined : Math.floor(this.#monotonic() + this.#offset);
  }

  /**
   * Takes the time that Redis said, of a question that was sent at `sentAt` by the monotonic clock.
   */
  seen(redisNow: number, sentAt: number): void {
    this.#offset = redisNow - (sentAt + this.#monotonic()) / 2;
  }
}

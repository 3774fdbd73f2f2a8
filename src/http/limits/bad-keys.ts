import type { Clock } from '../../contracts/clock.ts';
import type { Operations } from '../../services/operations.ts';
import { addressGroup } from './address-group.ts';

/** Addresses of which it is known here that they must wait. */
const MOST_WAITING = 10_000;

/**
 * Counts the rejected API keys of each address, an IPv6 one by its /64, on all replicas together:
 * 20 a minute.
 */
export class BadKeys {
  readonly #clock: Clock;
  readonly #operations: Pick<Operations, 'countRejectedKey'>;
  readonly #until = new Map<string, number>();

  constructor(clock: Clock, operations: Pick<Operations, 'countRejectedKey'>) {
    this.#clock = clock;
    this.#operations = operations;
  }

  /**
   * After how many seconds the address may try the next one, as far as is known here; 0 is at once.
   */
  waitOf(address: string): number {
    const until = this.#until.get(addressGroup(address));
    return until === undefined ? 0 : Math.max(0, Math.ceil((until - this.#clock.now()) / 1_000));
  }

  /** Notes one; answers `waitOf`. Never rejects. */
  async note(address: string): Promise<number> {
    const group = addressGroup(address);
    const { within, retryAfterMs } = await this.#operations.countRejectedKey(group);
    if (within) return 0;
    this.#until.delete(group);
    this.#until.set(group, this.#clock.now() + retryAfterMs);
    if (this.#until.size > MOST_WAITING)
      for (const first of this.#until.keys()) {
        this.#until.delete(first);
        break;
      }
    return Math.ceil(retryAfterMs / 1_000);
  }
}

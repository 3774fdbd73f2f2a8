import type { Lease } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';

interface Entry {
  readonly name: string;
  readonly lease: Lease | undefined;
  readonly act: () => void | Promise<void>;
  /** Instead of `act`, where the lease is over. */
  readonly dropped?: () => void;
}

/**
 * The intents that machines have put out, carried out in order after the event that caused them. What carries a lease
 * is dropped when the lease is no longer held. What runs on in the background is kept track of, so that it can be drained.
 */
export class Outbox {
  readonly #log: Log;
  readonly #queue: Entry[] = [];
  readonly #running = new Set<Promise<void>>();
  #draining = false;

  constructor(log: Log) { this.#log = log; }

  put(entry: Entry): void { this.#queue.push(entry); }

  /** Carries out all that is there, and what that adds. Not re-entrant: an inner call leaves it to the outer one. */
  drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    try {
      for (let entry = this.#queue.shift(); entry; entry = this.#queue.shift()) this.#carryOut(entry);
    } finally {
      this.#draining = false;
    }
  }

  /** Resolves once what is under way now is done. */
  async drained(): Promise<void> {
    await Promise.all([...this.#running]);
  }

  /** Resolves once nothing is under way. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #carryOut({ name, lease, act, dropped }: Entry): void {
    if (lease && !lease.held()) {
      this.#log.info({ intent: name, epoch: lease.epoch }, 'intent dropped: its lease is over');
      dropped?.();
      return;
    }
    try {
      const running = act();
      if (!running) return;
      const tracked: Promise<void> = running
        .catch((error: unknown) => this.#log.error({ intent: name, error: String(error) }, 'intent failed'))
        .finally(() => this.#running.delete(tracked));
      this.#running.add(tracked);
    } catch (error) {
      this.#log.error({ intent: name, error: String(error) }, 'intent failed');
    }
  }
}

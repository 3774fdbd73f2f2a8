import type { ApprovalMirror } from '../../actors/approval/approval-mirror.ts';
import type { Clock } from '../../contracts/clock.ts';
import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';
import { tooManyOpen, tooManyWait } from '../../model/approvals/approval-refusals.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';

/** Requests of one tenant that hold the line, on one replica; and of all. */
const MOST_OF_TENANT = 16;
const MOST = 1_024;

export interface WaitTerms {
  readonly waitMs: number;
  readonly tenant: string;
  readonly signal: () => AbortSignal;
}

/** Lets requests wait until a person has decided, without asking the store. */
export class ApprovalWaits {
  readonly #mirror: ApprovalMirror;
  readonly #clock: Clock;
  readonly #places = new KeyedSemaphore(MOST_OF_TENANT);
  /** By approval: whom to tell. */
  readonly #waiting = new Map<string, Set<() => void>>();
  #count = 0;

  constructor({ mirror, clock }: { readonly mirror: ApprovalMirror; readonly clock: Clock }) {
    this.#mirror = mirror;
    this.#clock = clock;
    mirror.follow(({ kind, record }) => {
      if (kind === 'put' && record.status === 'pending') return;
      for (const tell of this.#waiting.get(record.id) ?? []) tell();
    });
  }

  get size(): number {
    return this.#count;
  }

  /**
   * Resolves once the approval is decided or over, or after that time; rejects with the reason of
   * the signal.
   */
  async decided({ id }: ApprovalRecord, { waitMs, tenant, signal }: WaitTerms): Promise<void> {
    if (this.#count >= MOST) throw tooManyOpen();
    if (!this.#places.acquire(tenant)) throw tooManyWait(MOST_OF_TENANT);
    this.#count += 1;
    try {
      await this.#told(id, waitMs, signal());
    } finally {
      this.#count -= 1;
      this.#places.release(tenant);
    }
  }

  #told(id: string, waitMs: number, signal: AbortSignal): Promise<void> {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    return new Promise<void>((resolve, reject) => {
      const end = (): void => {
        waiting.delete(end);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
        cancel();
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = (): void => {
        end();
        reject(signal.reason as Error);
      };
      const cancel = this.#clock.at(this.#clock.now() + waitMs, end);
      waiting.add(end);
      signal.addEventListener('abort', abort);
      if (signal.aborted) abort();
      else if (this.#mirror.get(id)?.status !== 'pending') end();
    });
  }
}

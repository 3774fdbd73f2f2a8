import type { Clock } from '../../contracts/clock.ts';
import type { Expiry } from '../../contracts/coordination/activity.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { End } from '../../model/sandbox.ts';

const ENDED_MS = 60_000;
const MOST_MARKS = 100_000;

/** Ends are kept for a minute. At most 100,000 of each; evicts the oldest. */
export class ActivityMarks {
  readonly #clock: Clock;
  readonly #since: number;
  readonly #activeAt = new Map<InstanceId, number>();
  readonly #working = new Set<InstanceId>();
  /** Ordered by ends. */
  readonly #ended = new Map<InstanceId, { readonly end: End; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  touch(id: InstanceId): void {
    this.#activeAt.delete(id);
    this.#activeAt.set(id, this.#clock.now());
    if (this.#activeAt.size > MOST_MARKS) dropFirst(this.#activeAt);
  }

  work(id: InstanceId, goesOn: boolean): void {
    this.touch(id);
    if (goesOn) this.#working.add(id);
    else this.#working.delete(id);
  }

  expire(
    id: InstanceId,
    { idleTimeoutMs, claimedAt }: { readonly idleTimeoutMs: number; readonly claimedAt: number },
  ): Expiry {
    if (this.#working.has(id)) return { expired: false, activeAt: this.#clock.now() };
    const activeAt = Math.max(claimedAt, this.#activeAt.get(id) ?? 0, this.#since);
    return this.#clock.now() - activeAt >= idleTimeoutMs
      ? { expired: true }
      : { expired: false, activeAt };
  }

  markEnded(id: InstanceId, end: End): void {
    const now = this.#clock.now();
    this.#activeAt.delete(id);
    this.#working.delete(id);
    for (const [old, { until }] of this.#ended) {
      if (until > now && this.#ended.size < MOST_MARKS) break;
      this.#ended.delete(old);
    }
    if (!this.#ended.has(id)) this.#ended.set(id, { end, until: now + ENDED_MS });
  }

  ended(id: InstanceId): End | undefined {
    const found = this.#ended.get(id);
    return found && found.until > this.#clock.now() ? found.end : undefined;
  }
}

const dropFirst = (marks: Map<InstanceId, number>): void => {
  for (const first of marks.keys()) return void marks.delete(first);
};

import type { Trouble } from '../../machines/autoscaling/observation.ts';
import type { CopiedMember } from '../../model/envs/env-copy.ts';

/** For so long an instance may take to come. */
const STUCK_MS = 60_000;
/** The most moments that are told apart: a cluster may say what it likes. */
const MOST_MOMENTS = 256;

/**
 * Watches what another cluster shows of a member, and tells what no single look does. What was
 * before the first look is not known: then nothing counts as old.
 */
export class MemberWatch {
  /** Since when how many of the idle ones are, the oldest first. */
  readonly #idle: { since: number; count: number }[] = [];
  #last: CopiedMember | undefined;
  #claimedAt = 0;
  /** Since when as few are there as now, and more should be. */
  #lackingSince: number | undefined;

  saw(member: CopiedMember, now: number): void {
    const before = this.#last;
    this.#last = member;
    this.#sawIdle(member.idle, now);
    if (member.pending > 0 || (before && member.running > before.running)) this.#claimedAt = now;
    const there = member.idle + member.running;
    const isLacking = there < member.desired;
    const grew = before !== undefined && there > before.idle + before.running;
    this.#lackingSince = isLacking ? ((grew ? undefined : this.#lackingSince) ?? now) : undefined;
  }

  /** How many have been idle for so long. */
  settled(forMs: number, now: number): number {
    return countOf(this.#idle.filter(({ since }) => since <= now - forMs));
  }

  /** The youngest go first. Past the most moments, those of the last one count as of now. */
  #sawIdle(idle: number, now: number): void {
    let surplus = countOf(this.#idle) - idle;
    for (let last = this.#idle.at(-1); last && surplus > 0; last = this.#idle.at(-1)) {
      const gone = Math.min(surplus, last.count);
      surplus -= gone;
      last.count -= gone;
      if (last.count === 0) this.#idle.pop();
    }
    if (surplus >= 0) return;
    const merged = this.#idle.length < MOST_MOMENTS ? undefined : this.#idle.pop();
    this.#idle.push({ since: now, count: (merged?.count ?? 0) - surplus });
  }

  /** When a claim last came, as far as it showed; 0: none is known. */
  get claimedAt(): number {
    return this.#claimedAt;
  }

  trouble(now: number): Trouble | undefined {
    if (!this.#last || this.#lackingSince === undefined || now - this.#lackingSince < STUCK_MS)
      return undefined;
    const { desired, idle, running } = this.#last;
    return { reason: 'start failures', count: desired - idle - running, since: now };
  }
}

const countOf = (some: readonly { readonly count: number }[]): number =>
  some.reduce((sum, { count }) => sum + count, 0);

import type { Trouble } from '../../machines/autoscaling/observation.ts';
import type { CopiedMember } from '../../model/envs/env-copy.ts';

/** For so long an instance may take to come. */
const STUCK_MS = 60_000;

/**
 * Watches what another cluster shows of a member, and tells what no single look does. What was
 * before the first look is not known: then nothing counts as old.
 */
export class MemberWatch {
  /** Since when there are at least so many idle, from one on. */
  readonly #idleSince: number[] = [];
  #last: CopiedMember | undefined;
  #claimedAt = 0;
  /** Since when as few are there as now, and more should be. */
  #lackingSince: number | undefined;

  saw(member: CopiedMember, now: number): void {
    const before = this.#last;
    this.#last = member;
    if (this.#idleSince.length > member.idle) this.#idleSince.length = member.idle;
    while (this.#idleSince.length < member.idle) this.#idleSince.push(now);
    if (member.pending > 0 || (before && member.running > before.running)) this.#claimedAt = now;
    const there = member.idle + member.running;
    const isLacking = there < member.desired;
    const grew = before !== undefined && there > before.idle + before.running;
    this.#lackingSince = isLacking ? ((grew ? undefined : this.#lackingSince) ?? now) : undefined;
  }

  /** How many have been idle for so long. */
  settled(forMs: number, now: number): number {
    return this.#idleSince.filter((since) => since <= now - forMs).length;
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

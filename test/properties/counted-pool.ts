import type { MemberObservation } from '../../src/machines/autoscaling/observation.ts';
import type { TroubleReason } from '../../src/model/envs/scaling-decision.ts';

/** Fills, and instances become ready or fail, on request. */
export class CountedPool {
  readonly name: string;
  replicas: number;
  decided = 0;
  running = 0;
  starting = 0;
  /** Ages, longest idle first. */
  idle: number[] = [];
  /** Waiting or refused claims. */
  pending = 0;
  /** Whether they all wait. */
  waits = false;
  claimedAt = 0;
  broken: TroubleReason | undefined;
  failedAt = 0;
  quota: number | undefined;

  constructor(name: string, replicas: number) {
    [this.name, this.replicas] = [name, replicas];
  }

  claim(now: number): void {
    this.claimedAt = now;
    if (this.idle.shift() === undefined) this.pending = Math.min(50, this.pending + 1);
    else this.running += 1;
  }

  end(): void {
    this.running = Math.max(0, this.running - 1);
  }

  settle(now: number): void {
    while (this.present > this.replicas && this.starting > 0) this.starting -= 1;
    while (this.present > this.replicas && this.idle.length > 0) this.idle.shift();
    const ready = this.broken ? 0 : this.starting;
    this.starting += Math.max(0, this.replicas - this.present);
    this.starting -= ready;
    for (let count = 0; count < ready; count++) this.idle.push(now);
    if (this.broken && this.starting > 0) this.failedAt = now;
    for (; this.pending > 0 && this.idle.length > 0; this.pending -= 1) this.claim(now);
  }

  get present(): number {
    return this.running + this.starting + this.idle.length;
  }

  observed(now: number, protectionMs: number): MemberObservation {
    const {
      name,
      replicas: desired,
      running,
      pending,
      claimedAt,
      decided,
      broken,
      failedAt,
      quota,
    } = this;
    const owed = Math.max(0, desired - running - this.idle.length);
    const trouble =
      broken && broken !== 'quota' && owed > 0 && failedAt > 0
        ? { trouble: { reason: broken, count: owed, since: failedAt } }
        : {};
    return {
      name,
      desired,
      running,
      idle: this.idle.length,
      unavailable: 0,
      settled: this.idle.filter((born) => born <= now - protectionMs).length,
      pending,
      waiting: this.waits ? pending : undefined,
      claimedAt,
      reachable: true,
      decided,
      ...trouble,
      quota,
    };
  }
}

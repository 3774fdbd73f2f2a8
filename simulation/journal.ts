import type { Outlook } from '../src/machines/autoscaling/evaluation.ts';
import type { ScalingDecision } from '../src/model/envs/scaling-decision.ts';
import { bufferOf } from '../src/machines/autoscaling/modes.ts';
import type { Setting } from './setting.ts';
import type { SimulatedPool } from './simulated-pool.ts';

/** How it stood at the end of one stretch of time, and how many were refused in it. */
export interface Sample {
  readonly at: number;
  running: number;
  idle: number;
  desired: number;
  refused: number;
}

export interface Summary {
  readonly claims: number;
  readonly refused: number;
  readonly idleOnAverage: number;
  readonly idleHours: number;
  readonly runningOnAverage: number;
  readonly decisions: number;
  /** Of these, how many went the other way than the one before. */
  readonly flips: number;
  /** From each first miss until as many were idle as the mode wants, and nobody waited (ms). */
  readonly recoveriesMs: readonly number[];
  readonly samples: readonly Sample[];
}

const SAMPLES = 480;
const NOTHING = { running: 0, idle: 0, desired: 0 };

/** What happens in a simulated world, summed up from the end of its warm-up on. */
export class Journal {
  readonly #setting: Setting;
  readonly #samples: Sample[] = [];
  #at = 0;
  #idle = 0;
  #running = 0;
  #claims = 0;
  #refused = 0;
  #missedAt: number | undefined;
  readonly #recoveries: number[] = [];

  constructor(setting: Setting) {
    this.#setting = setting;
  }

  advance(now: number, pool: SimulatedPool): void {
    const from = Math.max(this.#at, this.#setting.warmUpMs);
    this.#at = now;
    if (now <= from) return;
    this.#idle += pool.idle.size * (now - from);
    this.#running += pool.running * (now - from);
    const sample = this.#sample(from);
    sample.running = pool.running;
    sample.idle = pool.idle.size;
    sample.desired = pool.replicas;
  }

  served(now: number): void {
    if (this.#counts(now)) this.#claims += 1;
  }

  /** None was idle for a claim. */
  missed(now: number): void {
    this.#missedAt ??= now;
  }

  refused(now: number): void {
    if (!this.#counts(now)) return;
    this.#claims += 1;
    this.#refused += 1;
    this.#sample(now).refused += 1;
  }

  looked(now: number, outlook: Outlook | undefined): void {
    if (this.#missedAt === undefined || !outlook) return;
    const { idle, running } = outlook.seen;
    if (idle < bufferOf(this.#setting.group.scaleUpPolicy.mode, running)) return;
    if (this.#counts(this.#missedAt)) this.#recoveries.push(now - this.#missedAt);
    this.#missedAt = undefined;
  }

  summary(decisions: readonly ScalingDecision[]): Summary {
    const { warmUpMs, endMs } = this.#setting;
    const span = endMs - warmUpMs;
    const counted = decisions.filter(({ at }) => at >= warmUpMs);
    const directions = counted
      .map(({ changes }) => Math.sign(changes.reduce((sum, { from, to }) => sum + to - from, 0)))
      .filter((sign) => sign !== 0);
    return {
      claims: this.#claims,
      refused: this.#refused,
      idleOnAverage: this.#idle / span,
      idleHours: this.#idle / 3_600_000,
      runningOnAverage: this.#running / span,
      decisions: counted.length,
      flips: directions.filter((sign, index) => index > 0 && sign !== directions[index - 1]).length,
      recoveriesMs: this.#recoveries,
      samples: this.#samples,
    };
  }

  #counts(now: number): boolean {
    return now >= this.#setting.warmUpMs;
  }

  #sample(now: number): Sample {
    const { warmUpMs, endMs } = this.#setting;
    const width = (endMs - warmUpMs) / SAMPLES;
    const index = Math.min(SAMPLES - 1, Math.floor((now - warmUpMs) / width));
    while (this.#samples.length <= index)
      this.#samples.push({
        ...NOTHING,
        ...this.#samples.at(-1),
        at: warmUpMs + this.#samples.length * width,
        refused: 0,
      });
    const sample = this.#samples[index];
    if (!sample) throw new RangeError('no such sample');
    return sample;
  }
}

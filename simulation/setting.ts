import type { AutoscalingGroup } from '../src/model/envs/autoscaling-group.ts';
import type { Arrivals } from './demand.ts';

/** Something that happens to the world from outside at a moment (ms). */
export interface Edit {
  readonly at: number;
  readonly group: (group: AutoscalingGroup) => AutoscalingGroup;
}

/** What a simulated world is made of: its group, its demand, and what fails in it. Times in ms. */
export interface Setting {
  readonly group: AutoscalingGroup;
  readonly replicas: number;
  readonly startMs: number;
  readonly meanLifeMs: number;
  readonly startsAtOnce: number;
  /** So many principals claim in turn; each that is refused asks for one more. */
  readonly principals: number;
  /** How long a claim waits; 0: it is refused at once. */
  readonly waitMs: number;
  readonly arrivals: Arrivals;
  readonly edits: readonly Edit[];
  /** When starts fail. */
  readonly fails: (now: number) => boolean;
  readonly warmUpMs: number;
  readonly endMs: number;
  readonly seed: number;
}

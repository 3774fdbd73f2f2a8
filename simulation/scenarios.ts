import {
  groupFor,
  type AutoscalingGroup,
  type ScaleUpMode,
} from '../src/model/envs/autoscaling-group.ts';
import { poisson, type Arrivals, type Rate } from './demand.ts';
import { randomOf } from './random.ts';
import type { Edit, Setting } from './setting.ts';

export const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** What is asked of a group through a day. Moments count from the end of the warm-up. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly rate: Rate;
  /** The highest of `rate`. */
  readonly peak: number;
  readonly maxReplicas: number;
  readonly minReplicas?: number;
  readonly startsAtOnce?: number;
  readonly edits?: readonly Edit[];
  readonly fails?: (at: number) => boolean;
}

export interface Choice {
  readonly mode: ScaleUpMode;
  readonly seed: number;
  readonly waitSeconds: number;
  readonly hours: number;
  readonly principals: number;
  /** Seconds, where they differ from the defaults. */
  readonly cooldownSeconds?: number;
  readonly idleTimeoutSeconds?: number;
  readonly stabilizationSeconds?: number;
  readonly protectionWindowSeconds?: number;
}

export const WARM_UP_MS = HOUR_MS;

/** More than claim within a minute, in all but the busiest. */
export const PRINCIPALS = 1_000;

/** From midnight to midnight: nothing below `low`, `high` at noon. */
const wave =
  (low: number, high: number): Rate =>
  (at) => {
    const x = (at % (24 * HOUR_MS)) / (24 * HOUR_MS);
    return low + (high - low) * (4 * x * (1 - x)) ** 2;
  };

const between = (at: number, from: number, to: number): boolean => at >= from && at < to;

const withBounds =
  (minReplicas: number, maxReplicas: number) =>
  (group: AutoscalingGroup): AutoscalingGroup => ({ ...group, minReplicas, maxReplicas });

/** Every 20 minutes another word of the owner's. */
const edits: readonly Edit[] = Array.from({ length: 72 }, (_, index) => ({
  at: (index + 1) * 20 * MINUTE_MS,
  group:
    [
      withBounds(0, 20),
      withBounds(10, 60),
      withBounds(0, 60),
      withBounds(30, 40),
      withBounds(5, 5),
      (group: AutoscalingGroup) => ({ ...group, enabled: false }),
      (group: AutoscalingGroup) => ({ ...group, enabled: true, maxReplicas: 60 }),
    ][index % 7] ?? withBounds(0, 60),
}));

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'steady',
    title: 'Steady: 0.05 claims/s',
    rate: () => 0.05,
    peak: 0.05,
    minReplicas: 4,
    maxReplicas: 64,
  },
  {
    name: 'daily-wave',
    title: 'Daily wave: 0.01 claims/s at midnight, 0.3 at noon',
    rate: wave(0.01, 0.3),
    peak: 0.3,
    minReplicas: 4,
    maxReplicas: 200,
  },
  {
    name: 'bursts',
    title: 'Bursts: 0.5 claims/s for 2 min each hour',
    rate: (at) => (at % HOUR_MS < 2 * MINUTE_MS ? 0.5 : 0),
    peak: 0.5,
    minReplicas: 4,
    maxReplicas: 64,
  },
  {
    name: 'giant-burst',
    title: 'One giant burst: 0.02 claims/s, and 3/s for 5 min',
    peak: 3,
    minReplicas: 4,
    maxReplicas: 1_000,
    rate: (at) => (between(at, 6 * HOUR_MS, 6 * HOUR_MS + 5 * MINUTE_MS) ? 3 : 0.02),
  },
  {
    name: 'to-zero',
    title: 'To zero and back: 0.05 claims/s from 8 to 12 and from 14 to 18',
    peak: 0.05,
    maxReplicas: 64,
    rate: (at) =>
      between(at, 8 * HOUR_MS, 12 * HOUR_MS) || between(at, 14 * HOUR_MS, 18 * HOUR_MS) ? 0.05 : 0,
  },
  {
    name: 'refusing',
    title: 'Nothing starts from 6 to 8; 0.05 claims/s',
    rate: () => 0.05,
    peak: 0.05,
    maxReplicas: 64,
    fails: (at) => between(at, 6 * HOUR_MS, 8 * HOUR_MS),
  },
  {
    name: 'edits',
    title: 'An owner who edits limits every 20 min; 0.1 claims/s',
    rate: () => 0.1,
    peak: 0.1,
    maxReplicas: 60,
    edits,
  },
  {
    name: 'busy',
    title: 'Busy: 1,000 claims a minute',
    rate: () => 1_000 / 60,
    peak: 1_000 / 60,
    maxReplicas: 100_000,
    startsAtOnce: 1_000,
  },
];

/** The scenario as a world; `arrivals` instead of its own where they were recorded. */
export const settingOf = (scenario: Scenario, choice: Choice, arrivals?: Arrivals): Setting => {
  const {
    minReplicas = 0,
    maxReplicas,
    rate,
    peak,
    startsAtOnce = 128,
    fails = () => false,
  } = scenario;
  const made = groupFor('group', { replicas: 4, minReplicas, maxReplicas });
  const {
    cooldownSeconds,
    idleTimeoutSeconds,
    stabilizationSeconds,
    protectionWindowSeconds,
    mode,
    seed,
  } = choice;
  return {
    group: {
      ...made,
      scaleUpPolicy: { ...made.scaleUpPolicy, mode, ...defined({ cooldownSeconds }) },
      scaleDownPolicy: {
        ...made.scaleDownPolicy,
        ...defined({ idleTimeoutSeconds, stabilizationSeconds, protectionWindowSeconds }),
      },
    },
    replicas: 4,
    startMs: 15_000,
    startsAtOnce,
    principals: choice.principals,
    meanLifeMs: 300_000,
    waitMs: choice.waitSeconds * 1_000,
    seed,
    arrivals: arrivals ?? poisson((now) => rate(sinceWarmUp(now)), peak, randomOf(seed + 1_000)),
    edits: (scenario.edits ?? []).map(({ at, group }) => ({ at: at + WARM_UP_MS, group })),
    fails: (now) => fails(now - WARM_UP_MS),
    warmUpMs: WARM_UP_MS,
    endMs: WARM_UP_MS + choice.hours * HOUR_MS,
  };
};

/** The hour of warm-up is the last of a day before. */
const sinceWarmUp = (now: number): number =>
  now >= WARM_UP_MS ? now - WARM_UP_MS : now - WARM_UP_MS + 24 * HOUR_MS;

const defined = <T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };

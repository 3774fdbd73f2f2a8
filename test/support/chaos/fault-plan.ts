import { Dice } from '../builders/hostile-values.ts';
import { type Lengths, MAKERS, type Victims } from './fault-makers.ts';
import type { Fault } from './faults/fault.ts';
import type { Blow, Strike } from './strike.ts';

const CALM_MS = 1_000;
const CALM_MORE_MS = 3_000;
/** From a strike's first fault to its last. */
const SPREAD_MS = 1_500;
/** Counts from the first repair. */
const MENDING_MS = 600;
/** Number of faults in ten strikes. */
const AT_ONCE = [1, 1, 1, 1, 2, 2, 2, 2, 2, 3] as const;
const LONGEST_MS = 60_000;

export const FAULT_KINDS: readonly string[] = Object.keys(MAKERS);

export const kindsAmong = (all: readonly string[], kinds: readonly string[]): readonly string[] => {
  const unknown = kinds.find((kind) => !all.includes(kind));
  if (unknown === undefined) return kinds;
  throw new Error(`there is no fault "${unknown}"; there are: ${all.join(', ')}`);
};

export interface FaultPlanOptions {
  /** The same seed gives the same faults, victims and calm. */
  readonly seed: number;
  /** Of FAULT_KINDS; all by default. */
  readonly kinds?: readonly string[];
  readonly longestMs?: number;
}

/**
 * Every kind once in random order before any repeats; sometimes several, or one during another's
 * repair.
 */
export class FaultPlan {
  readonly #victims: Victims;
  readonly #dice: Dice;
  readonly #kinds: readonly string[];
  readonly #lengths: Lengths;
  #left: string[] = [];

  constructor(
    victims: Victims,
    { seed, kinds = FAULT_KINDS, longestMs = LONGEST_MS }: FaultPlanOptions,
  ) {
    [this.#victims, this.#dice, this.#kinds, this.#lengths] = [
      victims,
      new Dice(seed),
      kindsAmong(FAULT_KINDS, kinds),
      lengthsUpTo(longestMs),
    ];
  }

  next(most: number): Strike {
    const count = Math.min(this.#dice.pick(AT_ONCE), most);
    const calmMs = CALM_MS + this.#dice.below(CALM_MORE_MS);
    const blows: Blow[] = [];
    while (blows.length < count) {
      const { kind, fault } = this.#draw();
      if (blows.some(({ fault: other }) => keepsAway(other, fault))) {
        this.#left.push(kind);
        break;
      }
      if (blows.length === 0) blows.push({ fault, afterMs: calmMs });
      else if (this.#dice.chance(0.4))
        blows.push({ fault, afterMs: this.#dice.below(MENDING_MS), since: 'mending' });
      else blows.push({ fault, afterMs: calmMs + this.#dice.below(SPREAD_MS) });
    }
    return blows;
  }

  #draw(): { readonly kind: string; readonly fault: Fault } {
    if (this.#left.length === 0) this.#left = [...this.#kinds];
    const [kind = ''] = this.#left.splice(this.#dice.below(this.#left.length), 1);
    const make = MAKERS[kind];
    if (!make) throw new Error('there is no kind of fault to choose from');
    // Later choices of a running fault must not change the plan.
    return { kind, fault: make(this.#victims, new Dice(this.#dice.below(2 ** 32)), this.#lengths) };
  }
}

const keepsAway = (one: Fault, other: Fault): boolean =>
  one.kind === other.kind ||
  one.isAlone === true ||
  other.isAlone === true ||
  victimsOf(one).some((victim) => victimsOf(other).includes(victim));

const victimsOf = ({ victim, also = [] }: Fault): readonly string[] => [victim, ...also];

/** Mostly some seconds, sometimes the maximum. */
const lengthsUpTo = (longestMs: number): Lengths => {
  const between = (dice: Dice, least: number, most: number): number =>
    Math.min(least, longestMs) + dice.below(Math.max(1, Math.min(most, longestMs) - least));
  const long = (dice: Dice): number =>
    dice.chance(0.75) ? between(dice, 2_000, 15_000) : between(dice, 15_000, 60_000);
  return { long, brief: (dice) => (dice.chance(0.75) ? between(dice, 300, 3_000) : long(dice)) };
};

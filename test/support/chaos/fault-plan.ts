import { Dice } from '../builders/hostile-values.ts';
import { type Lengths, MAKERS, type Victims } from './fault-makers.ts';
import type { Fault } from './faults/fault.ts';
import type { Blow, Strike } from './strike.ts';

/** Between two strikes. */
const CALM_MS = 1_000;
const CALM_MORE_MS = 3_000;
/** From the first fault of a strike to its last. */
const SPREAD_MS = 1_500;
/** From when the first one begins to be mended. */
const MENDING_MS = 600;
/** Of ten strikes so many have one fault alone, two, three. */
const AT_ONCE = [1, 1, 1, 1, 2, 2, 2, 2, 2, 3] as const;
/** How long faults are that were not said to be shorter. */
const LONGEST_MS = 60_000;

export const FAULT_KINDS: readonly string[] = Object.keys(MAKERS);

/** Returns `kinds`; throws where one is not among those that there are, and names these. */
export const kindsAmong = (all: readonly string[], kinds: readonly string[]): readonly string[] => {
  const unknown = kinds.find((kind) => !all.includes(kind));
  if (unknown === undefined) return kinds;
  throw new Error(`there is no fault "${unknown}"; there are: ${all.join(', ')}`);
};

export interface FaultPlanOptions {
  /** The same seed has the same faults befall the same victims, after the same calm. */
  readonly seed: number;
  /** Of FAULT_KINDS; all unless told. */
  readonly kinds?: readonly string[];
  readonly longestMs?: number;
}

/**
 * Every kind once, in an order of chance, before any comes again; now and then two or three of
 * different kinds and victims at once, or one while another is being mended.
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

  /** At most so many faults. */
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
    // What chance does later, once the fault is under way, must not change what comes after it.
    return { kind, fault: make(this.#victims, new Dice(this.#dice.below(2 ** 32)), this.#lengths) };
  }
}

const keepsAway = (one: Fault, other: Fault): boolean =>
  one.kind === other.kind ||
  one.isAlone === true ||
  other.isAlone === true ||
  victimsOf(one).some((victim) => victimsOf(other).includes(victim));

const victimsOf = ({ victim, also = [] }: Fault): readonly string[] => [victim, ...also];

/** Mostly some seconds, and now and then as long as they may be. */
const lengthsUpTo = (longestMs: number): Lengths => {
  const between = (dice: Dice, least: number, most: number): number =>
    Math.min(least, longestMs) + dice.below(Math.max(1, Math.min(most, longestMs) - least));
  const long = (dice: Dice): number =>
    dice.chance(0.75) ? between(dice, 2_000, 15_000) : between(dice, 15_000, 60_000);
  return { long, brief: (dice) => (dice.chance(0.75) ? between(dice, 300, 3_000) : long(dice)) };
};

import type { InspectedActors } from '../../actors/inspection/inspected-actors.ts';
import type { Transition } from '../../model/inspection.ts';

/** Transitions of one page at most. */
export const MOST_OF_PAGE = 50;
/** Transitions of one reading that wait to be read; where there are more the oldest go. */
const MOST_KEPT = 1_000;

/**
 * Up to where an actor's transitions were told: the last of them, as the replica `by` counts and
 * dates it.
 */
export interface TransitionPosition extends Pick<Transition, 'number' | 'at' | 'to'> {
  readonly by: string;
}

export interface TransitionPage {
  readonly transitions: readonly Transition[];
  /** Some before these are not known any more. */
  readonly missed: boolean;
  /** The actor is no more, and this is the last page. */
  readonly ended: boolean;
  /** For the next page. */
  readonly mark: TransitionPosition;
}

export interface TransitionCursorOptions {
  readonly transitions: InspectedActors['transitions'];
  readonly key: string;
  /** The replica of which these trails are. */
  readonly by: string;
  readonly now: number;
  readonly changed?: () => void;
}

/**
 * One actor's transitions from the moment on that this is made, page by page; what was not read is
 * kept, up to a bound, and also when the actor is no more. To be closed.
 */
export class TransitionCursor {
  readonly #by: string;
  readonly #start: TransitionPosition;
  readonly #unfollow: () => void;
  #kept: readonly Transition[];
  #ended = false;

  constructor({ transitions, key, by, now, changed }: TransitionCursorOptions) {
    this.#by = by;
    this.#kept = transitions.of(key);
    this.#start = positionIn({ transitions, key, by, now });
    this.#unfollow = transitions.follow(key, (transition) => {
      if (this.#ended) return; // another of the same key
      if (transition) this.#kept = [...this.#kept, transition].slice(-MOST_KEPT);
      else this.#ended = true;
      changed?.();
    });
  }

  /**
   * Gives what came after the mark, which may be another replica's; without one, nothing yet. The
   * same mark may be asked for again, an older one not.
   */
  page(mark: TransitionPosition | undefined): TransitionPage {
    if (!mark) return { transitions: [], missed: false, ended: false, mark: this.#start };
    const { rest, missed } = restAfter(this.#kept, mark, this.#by);
    if (mark.by === this.#by && !missed)
      this.#kept = this.#kept.slice(Math.max(0, this.#kept.length - rest.length - 1));
    const transitions = rest.slice(0, MOST_OF_PAGE);
    const last = transitions.at(-1) ?? this.#kept.at(-1);
    return {
      transitions,
      missed,
      ended: this.#ended && transitions.length === rest.length,
      mark: last ? positionOf(last, this.#by) : this.#start,
    };
  }

  close(): void {
    this.#unfollow();
  }
}

/** Tells where the actor stands now. */
export const positionIn = ({
  transitions,
  key,
  by,
  now,
}: Omit<TransitionCursorOptions, 'changed'>): TransitionPosition => {
  const last = transitions.of(key).at(-1);
  const { state = '', moves = 0 } = transitions.current(key) ?? {};
  return last ? positionOf(last, by) : { by, number: moves, at: now, to: state };
};

const positionOf = ({ number, at, to }: Transition, by: string): TransitionPosition => ({
  by,
  number,
  at,
  to,
});

/**
 * Each replica counts for itself, and dates by its own clock. So of another replica, and where
 * counting has begun anew, what is later than the mark comes after it; the first of that is left
 * out where it leads to where the actor was seen to stand: both have told of the same move.
 */
const restAfter = (
  kept: readonly Transition[],
  mark: TransitionPosition,
  by: string,
): { readonly rest: readonly Transition[]; readonly missed: boolean } => {
  const [first] = kept;
  if (!first) return { rest: [], missed: false };
  if (mark.by === by) {
    const place = kept.findIndex(({ number, at }) => number === mark.number && at === mark.at);
    if (place >= 0) return { rest: kept.slice(place + 1), missed: false };
    if (first.number > mark.number && first.at >= mark.at)
      return { rest: kept, missed: first.number > mark.number + 1 };
  }
  const later = kept.filter(({ at }) => at > mark.at);
  return {
    rest: later[0]?.to === mark.to ? later.slice(1) : later,
    missed: mark.by === by || (first.at > mark.at && first.number > 1),
  };
};

import type { InspectedActors } from '../../actors/inspection/inspected-actors.ts';
import type { Transition } from '../../model/inspection.ts';

export const MOST_OF_PAGE = 50;
/** Unread transitions of one cursor; beyond this the oldest are dropped. */
const MOST_KEPT = 1_000;

export interface TransitionPosition extends Pick<Transition, 'number' | 'at' | 'to'> {
  readonly by: string;
}

export interface TransitionPage {
  readonly transitions: readonly Transition[];
  readonly missed: boolean;
  readonly ended: boolean;
  readonly mark: TransitionPosition;
}

export interface TransitionCursorOptions {
  readonly transitions: InspectedActors['transitions'];
  readonly key: string;
  readonly by: string;
  readonly now: number;
  readonly changed?: () => void;
}

/** Keeps unread transitions up to a limit, also after the actor has ended. Must be closed. */
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
      if (this.#ended) return; // another actor of the same key
      if (transition) this.#kept = [...this.#kept, transition].slice(-MOST_KEPT);
      else this.#ended = true;
      changed?.();
    });
  }

  /**
   * The mark may come from another replica; without one, returns nothing yet. A caller may repeat
   * the latest mark, but not an older one.
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
 * Each replica numbers and dates transitions itself. After a change of replica, those with a later
 * time than the mark follow it, except a first one that leads to the last seen state: both replicas
 * recorded the same move.
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

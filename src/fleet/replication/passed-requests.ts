import { Refusal } from '../../model/refusals.ts';

/**
 * `answered`: by the cluster, whatever it said; `unavailable`: the client is told so in its place.
 */
type PassedOutcome = 'answered' | 'unavailable';
export type PassedCounts = Readonly<Record<PassedOutcome, number>>;

const NONE: PassedCounts = { answered: 0, unavailable: 0 };

/** Counts, by cluster, how requests ended that a manager passed on. */
export class PassedRequests {
  /** By cluster; no more of them than ever joined. */
  readonly #counts = new Map<string, PassedCounts>();

  of(clusterId: string): PassedCounts {
    return this.#counts.get(clusterId) ?? NONE;
  }

  note(clusterId: string, outcome: PassedOutcome): void {
    const counts = this.of(clusterId);
    this.#counts.set(clusterId, { ...counts, [outcome]: counts[outcome] + 1 });
  }

  /** Refusals other than CLUSTER_UNAVAILABLE, and faults of this end, do not count. */
  noteFailure(clusterId: string, error: unknown): void {
    if (error instanceof Refusal && error.code === 'CLUSTER_UNAVAILABLE')
      this.note(clusterId, 'unavailable');
  }

  /** Counts how work ends that resolves with an answer. It fails for nobody who has left. */
  async counted<T>(
    clusterId: string,
    { hasLeft, work }: { readonly hasLeft: () => boolean; readonly work: () => Promise<T> },
  ): Promise<T> {
    try {
      const answer = await work();
      this.note(clusterId, 'answered');
      return answer;
    } catch (error) {
      if (!hasLeft()) this.noteFailure(clusterId, error);
      throw error;
    }
  }
}

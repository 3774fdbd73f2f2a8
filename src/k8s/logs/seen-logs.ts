import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';

const MOST_LOGS = 10_000;

/** The times of the first and of the last line that were read here. */
interface Span {
  readonly first: string;
  readonly last: string;
}

/**
 * Remembers what this replica has read of containers' logs. Kubelets give the newest file alone,
 * and do not say that there were others: that a log was rotated shows only where a line is missing
 * that was there.
 */
export class SeenLogs {
  readonly #spans = new Map<string, Span>();

  /**
   * Lines of these times were there; '' is none. The logs that were read least recently are
   * forgotten beyond 10,000.
   */
  saw(target: PodTarget, { first, last }: Span): void {
    if (first === '' || last === '') return;
    const key = keyOf(target);
    const known = this.#spans.get(key);
    this.#spans.delete(key);
    this.#spans.set(
      key,
      known
        ? {
            first: first < known.first ? first : known.first,
            last: last > known.last ? last : known.last,
          }
        : { first, last },
    );
    const [oldest] = this.#spans.keys();
    if (this.#spans.size > MOST_LOGS && oldest !== undefined) this.#spans.delete(oldest);
  }

  /**
   * Whether lines were there at or after `since` that come before `first`, the first one that is
   * there now ('' where there is none).
   */
  lacks(
    target: PodTarget,
    { since, first }: { readonly since: string; readonly first: string },
  ): boolean {
    const known = this.#spans.get(keyOf(target));
    if (!known) return false;
    return [known.first, known.last].some(
      (time) => time >= since && (first === '' || time < first),
    );
  }
}

const keyOf = ({ uid, container }: PodTarget): string => `${uid}/${container}`;

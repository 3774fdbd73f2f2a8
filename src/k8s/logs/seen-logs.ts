import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';

const MOST_LOGS = 10_000;

interface Span {
  readonly first: string;
  readonly last: string;
}

/**
 * Lines that this replica has read. Kubelets return only the newest file, so a rotation shows only
 * by a missing line that existed before.
 */
export class SeenLogs {
  readonly #spans = new Map<string, Span>();

  /** Empty for none. Forgets the least recently read logs beyond 10,000. */
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

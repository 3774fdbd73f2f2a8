import type { InstanceFact, Vitals } from '../../../src/model/sandbox.ts';
import { NEVER_COMES_MS, waitedFor } from './eventually.ts';

/** Keeps a driver's facts, and lets a test wait for one. */
export class FactLog {
  readonly facts: InstanceFact[] = [];
  readonly #waiting = new Set<() => void>();

  onFact: (fact: InstanceFact) => void = () => {};

  readonly report = (fact: InstanceFact): void => {
    this.facts.push(fact);
    this.onFact(fact);
    for (const look of this.#waiting) look();
  };

  of(id: string): readonly InstanceFact[] {
    return this.facts.filter((fact) => fact.id === id);
  }

  kinds(id: string): readonly Vitals['kind'][] {
    return this.of(id).map((fact) => fact.vitals.kind);
  }

  /** The first of that kind; rejects after `patienceMs`. */
  when(id: string, kind: Vitals['kind'], patienceMs = NEVER_COMES_MS): Promise<InstanceFact> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.of(id).find((fact) => fact.vitals.kind === kind);
        if (!found) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(
          new Error(
            waitedFor(
              `${kind} of ${id} in ${patienceMs} ms`,
              this.of(id).map((fact) => fact.vitals),
            ),
          ),
        );
      }, patienceMs);
      this.#waiting.add(look);
      look();
    });
  }
}

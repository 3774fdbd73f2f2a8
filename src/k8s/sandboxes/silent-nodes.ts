import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';

export interface SilentNodesDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly changed: (nodeName: string) => void;
}

/** A node counts as silent this long after a missing answer. */
export const SILENT_MS = 5_000;
const MOST_NODES = 1_000;

/**
 * Nodes that did not answer this replica; their idle instances are not claimed. The cluster counts
 * a node as ready for about a minute after its last report.
 */
export class SilentNodes {
  readonly #deps: SilentNodesDeps;
  readonly #marks = new Map<string, () => void>();

  constructor(deps: SilentNodesDeps) {
    this.#deps = deps;
  }

  trouble(nodeName: string): string | undefined {
    return this.#marks.has(nodeName) ? 'its node does not answer' : undefined;
  }

  noAnswer(nodeName: string): void {
    const known = this.#marks.get(nodeName);
    if (!known && this.#marks.size >= MOST_NODES) return;
    known?.();
    const { clock, log, changed } = this.#deps;
    this.#marks.set(
      nodeName,
      clock.at(clock.now() + SILENT_MS, () => {
        this.answered(nodeName);
      }),
    );
    if (known) return;
    log.warn({ node: nodeName, forMs: SILENT_MS }, 'node-does-not-answer');
    changed(nodeName);
  }

  answered(nodeName: string): void {
    const cancel = this.#marks.get(nodeName);
    if (!cancel) return;
    this.#marks.delete(nodeName);
    cancel();
    this.#deps.changed(nodeName);
  }

  stop(): void {
    for (const cancel of this.#marks.values()) cancel();
    this.#marks.clear();
  }
}

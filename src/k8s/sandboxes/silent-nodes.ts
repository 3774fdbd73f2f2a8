import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';

export interface SilentNodesDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Called if a node becomes silent, or answers again. */
  readonly changed: (nodeName: string) => void;
}

/** Time in ms that a node counts as silent after a missing answer. */
export const SILENT_MS = 5_000;
/** Maximum silent nodes to remember; the cluster itself reports others later. */
const MOST_NODES = 1_000;

/**
 * Remembers for some seconds which nodes did not answer this replica. The cluster counts a node as
 * ready for about a minute after its last report. Idle instances on a silent node are not claimed.
 */
export class SilentNodes {
  readonly #deps: SilentNodesDeps;
  /** Cancels the timer of each mark, by the node's name. */
  readonly #marks = new Map<string, () => void>();

  constructor(deps: SilentNodesDeps) {
    this.#deps = deps;
  }

  /** Returns why idle instances on the node must not be claimed; undefined if they may be. */
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

import type { AuditEntry } from '../contracts/audit.ts';
import type { Clock } from '../contracts/clock.ts';

interface Omitted { readonly kind: 'omitted'; readonly count: number; readonly why: 'no good key' }

/** Lines of a minute that nobody's key stands behind. */
const MOST_A_MINUTE = 60;
const MINUTE_MS = 60_000;

/**
 * What is refused for want of a good key: the first 60 of a minute have a line each, the others are counted in one, so that whoever has no
 * key can't push out of the files what those did who have one.
 */
export class Strangers {
  readonly #clock: Clock;
  readonly #tell: (line: Omitted) => void;
  #count = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, tell: (line: Omitted) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Whether it is to have a line. */
  letIn({ caller, via }: AuditEntry): boolean {
    if (caller !== undefined || via !== undefined) return true;
    this.#cancel ??= this.#clock.at(this.#clock.now() + MINUTE_MS, () => { this.stop(); });
    this.#count += 1;
    return this.#count <= MOST_A_MINUTE;
  }

  /** Tells what was counted so far. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const omitted = this.#count - MOST_A_MINUTE;
    this.#count = 0;
    if (omitted > 0) this.#tell({ kind: 'omitted', count: omitted, why: 'no good key' });
  }
}

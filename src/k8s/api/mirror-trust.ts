import { isRefused } from './api-errors.ts';
import { FORBIDDEN, FORGOTTEN } from './reflector-terms.ts';

/** Watches must not resume from the mirror's revision; `afresh`: it belongs to another store. */
export interface ListDue {
  readonly afresh: boolean;
}

/** Why the last watch may have followed an older store, whose changes it would not report. */
export type Doubt = 'silent' | 'cut';

/**
 * Tracks whether a mirror is reliable: the API server's last sign of life, pending lists and
 * comparisons, and the current problem.
 */
export class MirrorTrust {
  readonly #silenceMs: number;
  readonly #onHeard: () => void;
  #listDue: ListDue | undefined = { afresh: false };
  #doubt: Doubt | undefined;
  #heardAt = Number.NEGATIVE_INFINITY;
  #problem = 'not listed yet';
  #refused = false;

  /** `silenceMs`: the mirror becomes unreliable after this silence of the API server. */
  constructor(silenceMs: number, onHeard: () => void = () => undefined) {
    this.#silenceMs = silenceMs;
    this.#onHeard = onHeard;
  }

  get listDue(): ListDue | undefined {
    return this.#listDue;
  }

  get doubt(): Doubt | undefined {
    return this.#doubt;
  }

  /** Time since the API server's last sign of life; infinite before the first. */
  get silentMs(): number {
    return performance.now() - this.#heardAt;
  }

  /** Why the mirror is unreliable; undefined if it is reliable. */
  get stale(): string | undefined {
    return this.silentMs > this.#silenceMs ? this.#problem : undefined;
  }

  /** Whether the last failure was a missing right. */
  get refused(): boolean {
    return this.#refused;
  }

  heard(): void {
    this.#heardAt = performance.now();
    this.#refused = false;
    this.#onHeard();
  }

  /** Records a complete list, unless another list became due in the meantime. */
  listed(due: ListDue): void {
    if (this.#listDue !== due) return;
    this.#listDue = undefined;
    this.heard();
    this.#problem = 'the API server is silent';
  }

  /** Records a watch that we did not end. */
  watched(doubt: Doubt | undefined): void {
    this.#doubt = doubt;
    if (!doubt) this.heard();
  }

  /** Records a comparison with the store, and whether the mirror lacks anything. */
  compared(differs: boolean): void {
    this.#doubt = undefined;
    if (differs) this.#listDue = { afresh: false };
    else this.heard();
  }

  /** Records a failed list, watch or comparison. */
  failed(error: unknown): void {
    this.#refused = isRefused(error, FORBIDDEN);
    if (isRefused(error, FORGOTTEN)) this.#listDue ??= { afresh: false };
    this.#doubt ??= 'cut';
    if (!this.#listDue?.afresh)
      this.#problem = error instanceof Error ? error.message : String(error);
  }

  /** Records that the store was restored from an older copy; false if that is known already. */
  wentBack(why: string): boolean {
    if (this.#listDue?.afresh) return false;
    this.#listDue = { afresh: true };
    this.#doubt = undefined;
    this.#heardAt = Number.NEGATIVE_INFINITY;
    this.#problem = `the API server's store is another one than before: ${why}`;
    return true;
  }
}

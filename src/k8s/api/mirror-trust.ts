import { isRefused } from './api-errors.ts';
import { FORBIDDEN, FORGOTTEN } from './reflector-terms.ts';

/** Nothing may be resumed from the mirror's revision; `afresh`: it is another store's. */
export interface ListDue {
  readonly afresh: boolean;
}

/** Why the last watch may have been one of an older store, of which it tells nothing. */
export type Doubt = 'silent' | 'cut';

/**
 * Keeps how far a mirror can be relied on: when the API server was last heard, what has to be
 * listed or compared before the mirror is followed on, and what is wrong.
 */
export class MirrorTrust {
  readonly #silenceMs: number;
  readonly #onHeard: () => void;
  #listDue: ListDue | undefined = { afresh: false };
  #doubt: Doubt | undefined;
  #heardAt = Number.NEGATIVE_INFINITY;
  #problem = 'not listed yet';
  #refused = false;

  /** `silenceMs`: after so long a silence of the API server the mirror can't be relied on. */
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

  /** Since the API server was heard; infinite before that. */
  get silentMs(): number {
    return performance.now() - this.#heardAt;
  }

  /** Why the mirror can't be relied on; undefined where it can. */
  get stale(): string | undefined {
    return this.silentMs > this.#silenceMs ? this.#problem : undefined;
  }

  /** Whether the last failure was a lack of rights. */
  get refused(): boolean {
    return this.#refused;
  }

  heard(): void {
    this.#heardAt = performance.now();
    this.#refused = false;
    this.#onHeard();
  }

  /** Notes a list that is whole, which is nothing where another one became due meanwhile. */
  listed(due: ListDue): void {
    if (this.#listDue !== due) return;
    this.#listDue = undefined;
    this.heard();
    this.#problem = 'the API server is silent';
  }

  /** Notes a watch that ended otherwise than by us. */
  watched(doubt: Doubt | undefined): void {
    this.#doubt = doubt;
    if (!doubt) this.heard();
  }

  /** Notes that the mirror was compared with the store, and whether it lacks anything. */
  compared(differs: boolean): void {
    this.#doubt = undefined;
    if (differs) this.#listDue = { afresh: false };
    else this.heard();
  }

  /** Notes a list, watch or comparison that failed. */
  failed(error: unknown): void {
    this.#refused = isRefused(error, FORBIDDEN);
    if (isRefused(error, FORGOTTEN)) this.#listDue ??= { afresh: false };
    this.#doubt ??= 'cut';
    if (!this.#listDue?.afresh)
      this.#problem = error instanceof Error ? error.message : String(error);
  }

  /** Notes that the store is an older one than it was; false where that is known already. */
  wentBack(why: string): boolean {
    if (this.#listDue?.afresh) return false;
    this.#listDue = { afresh: true };
    this.#doubt = undefined;
    this.#heardAt = Number.NEGATIVE_INFINITY;
    this.#problem = `the API server's store is another one than before: ${why}`;
    return true;
  }
}

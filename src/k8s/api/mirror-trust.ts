import { isRefused } from './api-errors.ts';
import { FORBIDDEN, FORGOTTEN } from './reflector-terms.ts';

/** Watches must not resume from the mirror's revision; `afresh`: it belongs to another store. */
export interface ListDue {
  readonly afresh: boolean;
}

/** The last watch may have followed an older store, whose changes it would not report. */
export type Doubt = 'silent' | 'cut';

export class MirrorTrust {
  readonly #silenceMs: number;
  readonly #onHeard: () => void;
  #listDue: ListDue | undefined = { afresh: false };
  #doubt: Doubt | undefined;
  #heardAt = Number.NEGATIVE_INFINITY;
  #problem = 'not listed yet';
  #refused = false;

  /** The mirror becomes unreliable after a silence of `silenceMs`. */
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

  /** Infinite before the first sign of life. */
  get silentMs(): number {
    return performance.now() - this.#heardAt;
  }

  get stale(): string | undefined {
    return this.silentMs > this.#silenceMs ? this.#problem : undefined;
  }

  get refused(): boolean {
    return this.#refused;
  }

  heard(): void {
    this.#heardAt = performance.now();
    this.#refused = false;
    this.#onHeard();
  }

  /** Ignores the list if another became due in the meantime. */
  listed(due: ListDue): void {
    if (this.#listDue !== due) return;
    this.#listDue = undefined;
    this.heard();
    this.#problem = 'the API server is silent';
  }

  watched(doubt: Doubt | undefined): void {
    this.#doubt = doubt;
    if (!doubt) this.heard();
  }

  compared(differs: boolean): void {
    this.#doubt = undefined;
    if (differs) this.#listDue = { afresh: false };
    else this.heard();
  }

  failed(error: unknown): void {
    this.#refused = isRefused(error, FORBIDDEN);
    if (isRefused(error, FORGOTTEN)) this.#listDue ??= { afresh: false };
    this.#doubt ??= 'cut';
    if (!this.#listDue?.afresh)
      this.#problem = error instanceof Error ? error.message : String(error);
  }

  /** False if that is known already. */
  wentBack(why: string): boolean {
    if (this.#listDue?.afresh) return false;
    this.#listDue = { afresh: true };
    this.#doubt = undefined;
    this.#heardAt = Number.NEGATIVE_INFINITY;
    this.#problem = `the API server's store is another one than before: ${why}`;
    return true;
  }
}

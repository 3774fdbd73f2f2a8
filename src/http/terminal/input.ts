import type { WebSocket } from 'ws';
import type { Clock } from '../../contracts/clock.ts';
import type { FrameBudget } from './frame-budget.ts';
import type { Liveness } from './liveness.ts';

export interface TerminalInputDeps {
  readonly ws: Pick<WebSocket, 'pause' | 'resume'>;
  readonly clock: Clock;
  readonly budget: FrameBudget;
  readonly liveness: Pick<Liveness, 'deaf' | 'listening'>;
}

/**
 * Stops reading from the client while its pty is full or its budget is exceeded. Loses no input.
 */
export class TerminalInput {
  readonly #deps: TerminalInputDeps;
  readonly #holds = new Set<'pty' | 'budget'>();
  #callOff: () => void = () => {};

  constructor(deps: TerminalInputDeps) {
    this.#deps = deps;
  }

  count(bytes: number): void {
    const { budget } = this.#deps;
    budget.spend(bytes);
    if (!this.#holds.has('budget')) this.#waitForBudget();
  }

  ptyIsFull(): void {
    this.#hold('pty');
  }

  ptyTakesMore(): void {
    this.#release('pty');
  }

  /** Leaves the budget for good. */
  stop(): void {
    this.#callOff();
    this.#deps.budget.leave();
  }

  #waitForBudget(): void {
    const { clock, budget } = this.#deps;
    const waitMs = budget.waitMs();
    if (waitMs === 0) return this.#release('budget');
    this.#hold('budget');
    this.#callOff = clock.at(clock.now() + waitMs, () => {
      this.#waitForBudget();
    });
  }

  #hold(why: 'pty' | 'budget'): void {
    this.#holds.add(why);
    this.#deps.liveness.deaf();
    this.#deps.ws.pause();
  }

  #release(why: 'pty' | 'budget'): void {
    if (!this.#holds.delete(why) || this.#holds.size > 0) return;
    this.#deps.liveness.listening();
    this.#deps.ws.resume();
  }
}

/** In ms; of the sizes in between, only the last applies. */
const RESIZE_EVERY_MS = 50;

/** Applies the first size at once, and the last size in the end. */
export class Resizes {
  readonly #clock: Clock;
  readonly #apply: (cols: number, rows: number) => void;
  #next: readonly [number, number] | undefined;
  #callOff: (() => void) | undefined;

  constructor(clock: Clock, apply: (cols: number, rows: number) => void) {
    this.#clock = clock;
    this.#apply = apply;
  }

  ask(cols: number, rows: number): void {
    if (this.#callOff) {
      this.#next = [cols, rows];
      return;
    }
    this.#callOff = this.#clock.at(this.#clock.now() + RESIZE_EVERY_MS, () => {
      this.#callOff = undefined;
      const next = this.#next;
      this.#next = undefined;
      if (next) this.ask(...next);
    });
    this.#apply(cols, rows);
  }

  stop(): void {
    this.#callOff?.();
  }
}

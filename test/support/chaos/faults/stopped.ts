import type { Fault } from './fault.ts';
import type { Ordeal } from './killed.ts';

export class Stopped implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others: Fault['others'];
  readonly hinders?: number;
  readonly lastsMs: number;
  readonly #signal: (name: 'SIGSTOP' | 'SIGCONT') => void;

  constructor(
    signal: (name: 'SIGSTOP' | 'SIGCONT') => void,
    { what, victim = what, others, hinders, lastsMs }: Ordeal,
  ) {
    [this.#signal, this.kind, this.victim, this.others, this.lastsMs] = [
      signal,
      `stop ${what}`,
      victim,
      others,
      lastsMs,
    ];
    if (hinders !== undefined) this.hinders = hinders;
  }

  async begin(): Promise<void> {
    this.#signal('SIGSTOP');
  }
  async end(): Promise<void> {
    this.#signal('SIGCONT');
  }
}

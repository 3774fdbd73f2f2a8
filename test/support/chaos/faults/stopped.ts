import type { Fault } from './fault.ts';

/** A process that stands still, and goes on where it stood. */
export class Stopped implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others: Fault['others'];
  readonly lastsMs: number;
  readonly #signal: (name: 'SIGSTOP' | 'SIGCONT') => void;

  constructor(signal: (name: 'SIGSTOP' | 'SIGCONT') => void, { what, victim = what, others, lastsMs }: { readonly what: string; readonly victim?: string; readonly others: Fault['others']; readonly lastsMs: number }) {
    [this.#signal, this.kind, this.victim, this.others, this.lastsMs] = [signal, `stop ${what}`, victim, others, lastsMs];
  }

  async begin(): Promise<void> { this.#signal('SIGSTOP'); }
  async end(): Promise<void> { this.#signal('SIGCONT'); }
}

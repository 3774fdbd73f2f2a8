import type { Fault } from './fault.ts';

/** A process that can be killed with -9 and started again on what it left. */
export interface Mortal {
  kill(): Promise<void>;
  restart(): Promise<void>;
}

export class Killed implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others: Fault['others'];
  readonly lastsMs: number;
  readonly #process: Mortal;

  constructor(process: Mortal, { what, victim = what, others, lastsMs }: { readonly what: string; readonly victim?: string; readonly others: Fault['others']; readonly lastsMs: number }) {
    [this.#process, this.kind, this.victim, this.others, this.lastsMs] = [process, `kill ${what}`, victim, others, lastsMs];
  }

  async begin(): Promise<void> { await this.#process.kill(); }
  async end(): Promise<void> { await this.#process.restart(); }
}

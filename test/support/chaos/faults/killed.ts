import type { Fault } from './fault.ts';

export interface Mortal {
  kill(): Promise<void>;
  restart(): Promise<void>;
}

/** `victim` is set if there are several of its kind. */
export interface Ordeal extends Pick<Fault, 'others' | 'hinders' | 'lastsMs'> {
  readonly what: string;
  readonly victim?: string;
}

export class Killed implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others: Fault['others'];
  readonly hinders?: number;
  readonly lastsMs: number;
  readonly #process: Mortal;

  constructor(process: Mortal, { what, victim = what, others, hinders, lastsMs }: Ordeal) {
    [this.#process, this.kind, this.victim, this.others, this.lastsMs] = [
      process,
      `kill ${what}`,
      victim,
      others,
      lastsMs,
    ];
    if (hinders !== undefined) this.hinders = hinders;
  }

  async begin(): Promise<void> {
    await this.#process.kill();
  }
  async end(): Promise<void> {
    await this.#process.restart();
  }
}

import type { ProcessOrder } from '../../../contracts/processes.ts';

/** An order of a process, and what its record is to give back. */
export interface ProcessStart extends Omit<ProcessOrder, 'container' | 'tag'> {
  readonly told: string;
  /** It is a terminal of one connection, and hung up when that leaves. */
  readonly bound?: true;
}

/** Why no process was started; src/contracts/processes.ts says what each means. */
export interface ProcessRefusal {
  readonly kind: 'instance-gone' | 'not-joinable' | 'refused' | 'full';
  readonly message: string;
  readonly field?: 'command' | 'cwd' | 'tty';
  readonly of?: 'sandbox' | 'tenant' | 'machine';
}

/** A start is refused with this. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused';
  readonly refusal: ProcessRefusal;

  constructor(refusal: ProcessRefusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

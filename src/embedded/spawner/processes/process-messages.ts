import type { ProcessOrder } from '../../../contracts/processes.ts';

/** `told` is returned with the process's record. */
export interface ProcessStart extends Omit<ProcessOrder, 'container' | 'tag'> {
  readonly told: string;
  /** Hung up when its connection closes. */
  readonly bound?: true;
}

export interface ProcessRefusal {
  readonly kind: 'instance-gone' | 'not-joinable' | 'refused' | 'full';
  readonly message: string;
  readonly field?: 'command' | 'cwd' | 'tty';
  readonly of?: 'sandbox' | 'tenant' | 'machine';
}

export class StartRefused extends Error {
  override readonly name = 'StartRefused';
  readonly refusal: ProcessRefusal;

  constructor(refusal: ProcessRefusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

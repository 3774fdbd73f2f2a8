import type { ProcessOrder } from '../../../contracts/processes.ts';

/** An order to start a process, and the text to return with its record. */
export interface ProcessStart extends Omit<ProcessOrder, 'container' | 'tag'> {
  readonly told: string;
  /** The process is a terminal of one connection, hung up when that connection closes. */
  readonly bound?: true;
}

/** The reason why no process was started; see src/contracts/processes.ts. */
export interface ProcessRefusal {
  readonly kind: 'instance-gone' | 'not-joinable' | 'refused' | 'full';
  readonly message: string;
  readonly field?: 'command' | 'cwd' | 'tty';
  readonly of?: 'sandbox' | 'tenant' | 'machine';
}

/** A start was refused for this reason. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused';
  readonly refusal: ProcessRefusal;

  constructor(refusal: ProcessRefusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

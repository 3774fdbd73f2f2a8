import type { ProcessOrder } from '../../../contracts/processes.ts';
import type { ProcessFact, ProcessId, ProcessSignal } from '../../../model/process.ts';

/** Asks something of the processes of one sandbox; each call is answered once. */
export type ProcessCall =
  | { readonly act: 'start'; readonly order: ProcessStart }
  | { readonly act: 'list' }
  | { readonly act: 'find'; readonly processId: ProcessId }
  /** The input itself is the next frame of kind `input`, with the request as its channel. */
  | { readonly act: 'write'; readonly processId: ProcessId }
  | { readonly act: 'close-input'; readonly processId: ProcessId }
  | {
      readonly act: 'resize';
      readonly processId: ProcessId;
      readonly cols: number;
      readonly rows: number;
    }
  | { readonly act: 'signal'; readonly processId: ProcessId; readonly name: ProcessSignal }
  | { readonly act: 'remove'; readonly processId: ProcessId };

export type ProcessStart = Omit<ProcessOrder, 'container'>;

/** Why a call was not carried out; src/contracts/processes.ts says what each means. */
export interface ProcessRefusal {
  readonly kind:
    | 'instance-gone'
    | 'not-joinable'
    | 'gone'
    | 'ended'
    | 'input-closed'
    | 'refused'
    | 'full';
  readonly message: string;
  readonly field?: 'command' | 'cwd' | 'env' | 'tty' | 'container';
  readonly of?: 'sandbox' | 'tenant' | 'machine';
}

export type ProcessDaemonMessage =
  | {
      readonly type: 'process';
      readonly request: number;
      readonly id: string;
      readonly call: ProcessCall;
    }
  /** Takes back a `write` that was not answered yet. */
  | { readonly type: 'process-call-off'; readonly request: number }
  /** Reads output; `credit` and `close` go on, by the channel. */
  | {
      readonly type: 'process-read';
      readonly channel: number;
      readonly id: string;
      readonly processId: ProcessId;
      readonly from?: string;
      readonly pace: boolean;
    };

export type ProcessSpawnerMessage =
  | {
      readonly type: 'process-answer';
      readonly request: number;
      readonly facts: readonly ProcessFact[];
    }
  | { readonly type: 'process-refused'; readonly request: number; readonly refusal: ProcessRefusal }
  /** Says at which position the bytes begin that come on the channel from now on. */
  | { readonly type: 'process-position'; readonly channel: number; readonly position: number }
  /** So many bytes are not kept any more, in this place. */
  | { readonly type: 'process-dropped'; readonly channel: number; readonly bytes: number }
  /** The reading is over, at the end or for want of a process. */
  | {
      readonly type: 'process-read-over';
      readonly channel: number;
      readonly fact?: ProcessFact;
      readonly refusal?: ProcessRefusal;
    };

/** A call is refused with this. */
export class CallRefused extends Error {
  override readonly name = 'CallRefused';
  readonly refusal: ProcessRefusal;

  constructor(refusal: ProcessRefusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

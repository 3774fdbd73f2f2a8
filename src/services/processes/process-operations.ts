import type { ProcessFact, ProcessId, ProcessOutput, ProcessSignal } from '../../model/process.ts';
import type { Caller } from '../../model/tenant.ts';

export interface ProcessOperations {
  readonly startProcess: (
    caller: Caller,
    sandboxId: string,
    request: StartProcessRequest,
  ) => Promise<ProcessFact>;
  /** If the reading fails, the process still runs, and the reading rejects. */
  readonly runProcess: (
    caller: Caller,
    sandboxId: string,
    request: StartProcessRequest & Omit<FollowProcessRequest, 'processId'>,
  ) => Promise<ProcessFollow>;
  readonly listProcesses: (caller: Caller, sandboxId: string) => Promise<readonly ProcessFact[]>;
  readonly getProcess: (
    caller: Caller,
    sandboxId: string,
    processId: ProcessId,
  ) => Promise<ProcessFact>;
  readonly followProcess: (
    caller: Caller,
    sandboxId: string,
    request: FollowProcessRequest,
  ) => Promise<ProcessFollow>;
  /** Resolves once the process has the input, or once it is next in the queue; at most 64 KiB. */
  readonly giveInput: (caller: Caller, sandboxId: string, input: ProcessInput) => Promise<void>;
  readonly writeToProcess: (
    caller: Caller,
    sandboxId: string,
    input: ProcessInput,
  ) => Promise<ProcessFact>;
  readonly signalProcess: (
    caller: Caller,
    sandboxId: string,
    request: { readonly processId: ProcessId; readonly name: ProcessSignal },
  ) => Promise<ProcessFact>;
  readonly resizeProcess: (
    caller: Caller,
    sandboxId: string,
    request: { readonly processId: ProcessId; readonly cols: number; readonly rows: number },
  ) => Promise<ProcessFact>;
  /** Resolves with the last state, once the process has ended and is forgotten. */
  readonly deleteProcess: (
    caller: Caller,
    sandboxId: string,
    processId: ProcessId,
  ) => Promise<ProcessFact>;
}

export interface StartProcessRequest {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly tty?: { readonly cols: number; readonly rows: number };
  readonly stdin: boolean;
  /** In ms; absent for no timeout. */
  readonly timeoutMs?: number;
  readonly tag?: string;
  readonly container?: string;
  /** Always means the same process. */
  readonly key?: string;
}

export interface FollowProcessRequest {
  readonly processId: ProcessId;
  readonly from?: string;
  readonly pace: boolean;
}

export interface ProcessInput {
  readonly processId: ProcessId;
  readonly bytes: Buffer;
  readonly last: boolean;
}

/** While it is open, the sandbox is not idle. */
export interface ProcessFollow {
  readonly fact: ProcessFact;
  readonly output: (signal: AbortSignal) => AsyncIterable<ProcessOutput>;
  /** Idempotent. */
  readonly close: () => void;
}

import type { ProcessFact, ProcessId, ProcessOutput, ProcessSignal } from '../../model/process.ts';
import type { Caller } from '../../model/tenant.ts';

/** The use cases of processes in sandboxes. */
export interface ProcessOperations {
  /** Starts a process, or finds the one that was started under the same key. */
  readonly startProcess: (
    caller: Caller,
    sandboxId: string,
    request: StartProcessRequest,
  ) => Promise<ProcessFact>;
  /**
   * Starts a process likewise, and reads it at once. Where it can't be read it runs all the same,
   * and the reading rejects.
   */
  readonly runProcess: (
    caller: Caller,
    sandboxId: string,
    request: StartProcessRequest & Omit<FollowProcessRequest, 'processId'>,
  ) => Promise<ProcessFollow>;
  /** The latest start first. */
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
  /** Resolves once the process has the input, or will have it next; 64 KiB at most. */
  readonly giveInput: (caller: Caller, sandboxId: string, input: ProcessInput) => Promise<void>;
  /** Does the same, and then tells of the process. */
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
  /** Resolves once it has ended and is forgotten; the fact is of the moment before. */
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
  /** Absent: none. */
  readonly timeoutMs?: number;
  readonly tag?: string;
  readonly container?: string;
  /** Is the client's: under the same key the same process is meant. */
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
  /** Nothing comes behind it. */
  readonly last: boolean;
}

/** A reading that holds a place until it is closed. While it is open the sandbox isn't idle. */
export interface ProcessFollow {
  readonly fact: ProcessFact;
  /** To be called once. */
  readonly output: (signal: AbortSignal) => AsyncIterable<ProcessOutput>;
  /** May be repeated. */
  readonly close: () => void;
}

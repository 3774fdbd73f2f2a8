import type { InstanceId } from '../model/identifiers.ts';
import type { ProcessOutput, ProcessFact, ProcessId, ProcessSignal } from '../model/process.ts';

/** Also if the sandbox no longer remembers the process. */
export class ProcessGone extends Error {
  override readonly name = 'ProcessGone';
}

/** It takes no more signals or sizes. Its output can still be read. */
export class ProcessEnded extends Error {
  override readonly name = 'ProcessEnded';
}

/** Started without input, closed, or ended; `message` says which. */
export class InputClosed extends Error {
  override readonly name = 'InputClosed';
}

/** `message` gives the reason, `field` the field to change. */
export class ProcessRefused extends Error {
  override readonly name = 'ProcessRefused';
  readonly field: 'command' | 'cwd' | 'env' | 'tty' | 'container';

  constructor(field: ProcessRefused['field'], message: string) {
    super(message);
    this.field = field;
  }
}

/**
 * The sandbox has its maximum of live processes, or the tenant's kept output leaves no room.
 * Nothing was started.
 */
export class ProcessesFull extends Error {
  override readonly name = 'ProcessesFull';
  readonly of: 'sandbox' | 'tenant' | 'machine';

  constructor(of: ProcessesFull['of'], message: string) {
    super(message);
    this.of = of;
  }
}

/** `message` names the alternative. */
export class ProcessesNotProvided extends Error {
  override readonly name = 'ProcessesNotProvided';
}

export interface ProcessOrder {
  /** Made by the caller, from 1 to 64 letters, digits and dashes. */
  readonly processId: ProcessId;
  /** Charged for the kept output; see tenantKey. */
  readonly tenant: string;
  /** The program, searched in PATH, and its arguments. */
  readonly argv: readonly string[];
  readonly cwd?: string;
  /** Overrides the environment of the sandbox's commands. */
  readonly env?: Readonly<Record<string, string>>;
  /** If set, the process has a terminal of this size, and prints only to `stdout`. */
  readonly tty?: { readonly cols: number; readonly rows: number };
  /**
   * Keeps the input open until `closeInput`; otherwise it is /dev/null. With `tty`, always open.
   */
  readonly stdin: boolean;
  /** Kills its process group after this time, in ms. Defaults to never. */
  readonly timeoutMs?: number;
  readonly tag?: string;
  readonly container?: string;
}

export interface OutputRequest {
  /**
   * A `next` of this process. Defaults to the beginning, also if invalid; `dropped` gives the bytes
   * that are no longer kept. `latest` reads only new output.
   */
  readonly from?: string;
  /**
   * The process waits for this reader by back-pressure. Otherwise a reader that falls behind the
   * kept output receives `dropped`.
   */
  readonly pace: boolean;
  /** Called when the reading has its position, and receives all output from then on. May repeat. */
  readonly positioned?: () => void;
}

export interface ProcessInput {
  readonly bytes: Buffer;
  readonly signal: AbortSignal;
}

export interface StartedReading {
  readonly fact: ProcessFact;
  /** Call it once, unless `leave` was called. */
  readonly output: (signal: AbortSignal) => AsyncIterable<ProcessOutput>;
  readonly leave: () => void;
}

/**
 * Processes outlive their caller, until they end, are removed, or their instance ends. At most 64
 * live ones an instance; the latest 64 ended ones are remembered for at least 10 minutes if they
 * fit. The last 1 MiB of a process's output is kept; nobody has to read it. Every method rejects
 * with InstanceGone, with NotJoinable if nothing can run in the instance now, with OutcomeUnknown
 * if it may have taken or may still take effect, or with ProcessesNotProvided. Each settles within
 * about 30 s, also for a frozen instance or a hung node; a start that waits for others may take
 * another 60 s. Deliberately left out: tenants' rights, and whether the instance counts as active.
 */
export interface ProcessDriver {
  /** Never changes. */
  readonly provided: boolean;
  /**
   * Once per processId: a repeated start returns the existing process. Resolves once the program
   * runs or has failed to start. A missing program exits with code 127, one that can't be executed
   * with 126. Rejects with ProcessRefused, ProcessesFull or ContainerGone; then nothing runs.
   */
  start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact>;
  run(id: InstanceId, order: ProcessOrder, request: OutputRequest): Promise<StartedReading>;
  list(id: InstanceId): Promise<readonly ProcessFact[]>;
  find(id: InstanceId, processId: ProcessId): Promise<ProcessFact | undefined>;
  /**
   * Pieces in order, `dropped` in place of lost output, and finally one `end`, except at an abort.
   * Reads ahead by about 128 KiB at most. Rejects with ProcessGone, also if the process is
   * forgotten or lost during the reading.
   */
  output(
    id: InstanceId,
    processId: ProcessId,
    request: OutputRequest & { readonly signal: AbortSignal },
  ): AsyncIterable<ProcessOutput>;
  /**
   * Whole and in order; at most 64 KiB a call. Resolves once the input waits in the last buffer
   * before the process (64 KiB at most). An abort before that discards the whole input and rejects
   * with the signal's reason. Rejects with ProcessGone or InputClosed.
   */
  write(id: InstanceId, processId: ProcessId, input: ProcessInput): Promise<void>;
  /**
   * Ends the input after all written input; on a terminal, types the end-of-file character.
   * Idempotent. Rejects with ProcessGone or InputClosed.
   */
  closeInput(id: InstanceId, processId: ProcessId): Promise<void>;
  /**
   * Rejects with ProcessGone, with ProcessEnded, or with ProcessRefused if the process lacks a
   * terminal.
   */
  resize(
    id: InstanceId,
    processId: ProcessId,
    size: { readonly cols: number; readonly rows: number },
  ): Promise<void>;
  /**
   * Signals its process group, or the foreground group of its terminal. Rejects with ProcessGone or
   * ProcessEnded.
   */
  signal(id: InstanceId, processId: ProcessId, name: ProcessSignal): Promise<void>;
  /**
   * Kills the process group, and forgets the process and its output. Resolves once the process has
   * ended. Processes that left the group live on. Rejects with ProcessGone.
   */
  remove(id: InstanceId, processId: ProcessId): Promise<void>;
}

export const startThenRead = async (
  driver: Pick<ProcessDriver, 'start' | 'output'>,
  id: InstanceId,
  { order, request }: { readonly order: ProcessOrder; readonly request: OutputRequest },
): Promise<StartedReading> => ({
  fact: await driver.start(id, order),
  output: (signal) => driver.output(id, order.processId, { ...request, signal }),
  leave: () => {},
});

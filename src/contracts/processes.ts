import type { InstanceId } from '../model/identifiers.ts';
import type { ProcessOutput, ProcessFact, ProcessId, ProcessSignal } from '../model/process.ts';

/** There is no such process in that sandbox, or it is forgotten. */
export class ProcessGone extends Error {
  override readonly name = 'ProcessGone';
}

/** The process has ended: it takes no signal and no size any more. Its output can still be read. */
export class ProcessEnded extends Error {
  override readonly name = 'ProcessEnded';
}

/**
 * Nothing takes the input: the process was started without it, has closed it or has ended.
 * `message` says which.
 */
export class InputClosed extends Error {
  override readonly name = 'InputClosed';
}

/** The order can't be carried out in that sandbox; `message` says why, `field` what to change. */
export class ProcessRefused extends Error {
  override readonly name = 'ProcessRefused';
  readonly field: 'command' | 'cwd' | 'env' | 'tty' | 'container';

  constructor(field: ProcessRefused['field'], message: string) {
    super(message);
    this.field = field;
  }
}

/**
 * No process more is started: the sandbox has as many live ones as it may, or the tenant's kept
 * output has no room for another's. Nothing was started.
 */
export class ProcessesFull extends Error {
  override readonly name = 'ProcessesFull';
  readonly of: 'sandbox' | 'tenant' | 'machine';

  constructor(of: ProcessesFull['of'], message: string) {
    super(message);
    this.of = of;
  }
}

/** This driver runs no processes; `message` says what to use in their place. */
export class ProcessesNotProvided extends Error {
  override readonly name = 'ProcessesNotProvided';
}

export interface ProcessOrder {
  /** Names the process in its sandbox; the caller makes it of 1 to 64 letters, digits, dashes. */
  readonly processId: ProcessId;
  /** Counts what is kept of the output among that of the tenant; see tenantKey. */
  readonly tenant: string;
  /** The program, looked for in PATH, and its arguments. */
  readonly argv: readonly string[];
  readonly cwd?: string;
  /** Added to what the sandbox's commands have; wins over it. */
  readonly env?: Readonly<Record<string, string>>;
  /** Given: it has a terminal of this size, and prints to `stdout` alone. */
  readonly tty?: { readonly cols: number; readonly rows: number };
  /**
   * Keeps its input open until `closeInput`. Otherwise it reads from /dev/null; with `tty` it is
   * always open.
   */
  readonly stdin: boolean;
  /** Ends its group by KILL after so long. Absent: never. */
  readonly timeoutMs?: number;
  /** The owner's own word for it. */
  readonly tag?: string;
  readonly container?: string;
}

export interface OutputRequest {
  /**
   * The position from which on it is read: a `next` of this process. Absent: from its beginning, of
   * which `dropped` tells how much is not kept; `latest`: only what comes from now on. What is no
   * position counts as absent.
   */
  readonly from?: string;
  /**
   * The process waits for this reader, by back-pressure, and loses nothing of what it prints from
   * now on. Otherwise a reader that falls behind by more than is kept is told what was dropped.
   */
  readonly pace: boolean;
}

export interface ProcessInput {
  readonly bytes: Buffer;
  readonly signal: AbortSignal;
}

/** Is answered to `run`: the process, and the reading of its output that began with it. */
export interface StartedReading {
  readonly fact: ProcessFact;
  /** As `output` of the driver. To be called once, unless it was left. */
  readonly output: (signal: AbortSignal) => AsyncIterable<ProcessOutput>;
  /** Gives the reading up where nobody takes it. May be repeated. */
  readonly leave: () => void;
}

/**
 * Processes in running instances that live on without whoever started them, until they end, are
 * removed, or their instance ends. At most 64 of an instance are live, and at most 64 that ended
 * are known, the latest, for 10 minutes at least where they fit.
 *
 * What a process prints is kept: the last 1 MiB of both streams together, in the order in which it
 * came. Nobody needs to read it. Two readers of one process are independent of each other; a reader
 * that leaves ends nothing.
 *
 * Every method rejects with InstanceGone where the instance isn't there, with NotJoinable where
 * nothing could be run in it now, with OutcomeUnknown where it may have taken effect or may yet,
 * and with ProcessesNotProvided where `provided` is false. Each answers within some 30 s, also of
 * an instance that is frozen or a node that hangs; a start that waits for others of its instance,
 * within another 60 s.
 *
 * Deliberately absent: waiting for an end without reading (a reader that begins at `latest` does
 * it), tenants' rights, and whether the instance counts as active.
 */
export interface ProcessDriver {
  /** Whether processes can be run here. Never changes. */
  readonly provided: boolean;
  /**
   * Starts a process once for each processId, however often it is asked: a repeated start returns
   * the fact of the one that is there. Resolves once the program runs, or has failed to: a program
   * that isn't there is an exit with code 127, one that can't be executed with 126. Rejects with
   * ProcessRefused, ProcessesFull or ContainerGone; then nothing runs.
   */
  start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact>;
  /** Starts a process as `start` does and reads it as `output` does, in one step where it can. */
  run(id: InstanceId, order: ProcessOrder, request: OutputRequest): Promise<StartedReading>;
  /** Lists the known ones, live and ended, the latest start first. */
  list(id: InstanceId): Promise<readonly ProcessFact[]>;
  /** Undefined where there is none of that id. */
  find(id: InstanceId, processId: ProcessId): Promise<ProcessFact | undefined>;
  /**
   * Reads what the process printed and prints: pieces in order, `dropped` in place of what is not
   * kept any more, and last one `end`, after which nothing comes. Reads ahead of whoever iterates
   * by some 128 KiB at most. Ends without an `end` at an abort. Rejects with ProcessGone, also
   * where the process is forgotten or lost meanwhile; of one that is removed the end may be seen.
   */
  output(
    id: InstanceId,
    processId: ProcessId,
    request: OutputRequest & { readonly signal: AbortSignal },
  ): AsyncIterable<ProcessOutput>;
  /**
   * Hands over input, whole and in the order of the calls; at most 64 KiB a call. Resolves once it
   * is with the process, or waits right before it (64 KiB at most do). An abort before that takes
   * it back whole and rejects with the signal's reason. Rejects with ProcessGone or InputClosed.
   */
  write(id: InstanceId, processId: ProcessId, input: ProcessInput): Promise<void>;
  /**
   * Lets the process read the end of its input behind what was written; on a terminal it types
   * the character for it. May be repeated. Rejects with ProcessGone or InputClosed.
   */
  closeInput(id: InstanceId, processId: ProcessId): Promise<void>;
  /** Rejects with ProcessGone, ProcessEnded, or ProcessRefused where it has no terminal. */
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
   * Kills the process group of one that is live, and forgets it with its output; resolves once it
   * has ended. Processes that left its group live on. Rejects with ProcessGone.
   */
  remove(id: InstanceId, processId: ProcessId): Promise<void>;
}

/** Starts a process and then reads it, by a driver that has no quicker way to do both. */
export const startThenRead = async (
  driver: Pick<ProcessDriver, 'start' | 'output'>,
  id: InstanceId,
  { order, request }: { readonly order: ProcessOrder; readonly request: OutputRequest },
): Promise<StartedReading> => ({
  fact: await driver.start(id, order),
  output: (signal) => driver.output(id, order.processId, { ...request, signal }),
  leave: () => {},
});

/** Names a process in its sandbox. */
export type ProcessId = string;

export const PROCESS_SIGNALS = [
  'HUP',
  'INT',
  'QUIT',
  'KILL',
  'USR1',
  'USR2',
  'TERM',
  'CONT',
  'TSTP',
  'WINCH',
] as const;
export type ProcessSignal = (typeof PROCESS_SIGNALS)[number];

/** State of a process that was started in a sandbox. */
export interface ProcessFact {
  readonly processId: ProcessId;
  /** Pid in the sandbox; 0 if unknown. */
  readonly pid: number;
  readonly argv: readonly string[];
  readonly status: 'Running' | 'Exited';
  /** Set after the end: its exit code, 128 + n after signal n, 124 after its timeout. */
  readonly exitCode?: number;
  /** The signal that ended it, such as `KILL`. */
  readonly signal?: string;
  /** A signal ended it, and the sandbox ran out of memory during its life. */
  readonly outOfMemory?: true;
  /** ms since the epoch. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly tag?: string;
  /** Has a terminal. */
  readonly tty: boolean;
  /** Takes input. */
  readonly stdin: boolean;
}

/** A piece of a process's output. `next` is the position after it: one word, opaque. */
export type ProcessOutput =
  | {
      readonly kind: 'bytes';
      readonly stream: 'stdout' | 'stderr';
      /** At most 64 KiB; may end within a character. */
      readonly bytes: Buffer;
      readonly next: string;
    }
  /** Output that is no longer kept; `bytes` if the number is known. */
  | { readonly kind: 'dropped'; readonly bytes?: number; readonly next: string }
  /** The process has ended, and its whole output was delivered. */
  | { readonly kind: 'end'; readonly fact: ProcessFact; readonly next: string };

/** Limits for every driver; docs/internals/bounds.md. */
export const LIVE_PROCESSES = 64;
export const ENDED_PROCESSES = 64;
export const KEPT_OUTPUT_BYTES = 1 << 20;
export const INPUT_BYTES = 64 << 10;

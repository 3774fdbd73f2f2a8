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

/** Describes what is known of a process that was started in a sandbox. */
export interface ProcessFact {
  readonly processId: ProcessId;
  /** Its number in the sandbox; 0 where it is not known. */
  readonly pid: number;
  readonly argv: readonly string[];
  readonly status: 'Running' | 'Exited';
  /** Is there once it ended: its code, 128 + n after signal n, 124 after its timeout. */
  readonly exitCode?: number;
  /** The signal that ended it, such as `KILL`. */
  readonly signal?: string;
  /** A signal ended it, and memory ran out in its sandbox while it ran. */
  readonly outOfMemory?: true;
  /** ms since the epoch. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly tag?: string;
  /** It has a terminal. */
  readonly tty: boolean;
  /** It takes input. */
  readonly stdin: boolean;
}

/** A piece of what a process printed. `next` is the position behind it: one word, opaque. */
export type ProcessOutput =
  | {
      readonly kind: 'bytes';
      readonly stream: 'stdout' | 'stderr';
      /** 64 KiB at most; cut anywhere, also within a character. */
      readonly bytes: Buffer;
      readonly next: string;
    }
  /** So many bytes, where known, are not kept any more. */
  | { readonly kind: 'dropped'; readonly bytes?: number; readonly next: string }
  /** It ended, and everything that it printed was given. */
  | { readonly kind: 'end'; readonly fact: ProcessFact; readonly next: string };

/** The bounds that every driver keeps; docs/internals/bounds.md. */
export const LIVE_PROCESSES = 64;
export const ENDED_PROCESSES = 64;
export const ENDED_FOR_MS = 600_000;
export const KEPT_OUTPUT_BYTES = 1 << 20;
export const INPUT_BYTES = 64 << 10;

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

export interface ProcessFact {
  readonly processId: ProcessId;
  /** 0 if unknown. */
  readonly pid: number;
  readonly argv: readonly string[];
  readonly status: 'Running' | 'Exited';
  /** Set after the end: 128 + n after signal n, 124 after its timeout. */
  readonly exitCode?: number;
  readonly signal?: string;
  /** A signal ended it, and the sandbox ran out of memory during its life. */
  readonly outOfMemory?: true;
  /** In ms since the epoch. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly tag?: string;
  readonly tty: boolean;
  readonly stdin: boolean;
}

/** `next` is the position after it: one word, opaque. */
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
  | { readonly kind: 'end'; readonly fact: ProcessFact; readonly next: string };

/** For every driver; see docs/internals/bounds.md. */
export const LIVE_PROCESSES = 64;
export const ENDED_PROCESSES = 64;
export const KEPT_OUTPUT_BYTES = 1 << 20;
export const INPUT_BYTES = 64 << 10;

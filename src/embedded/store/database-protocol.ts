import type { SqlValue } from './database-library.ts';

/** Arrays are flat, because a thread copies them on every call. */
/** With the statement's index. */
export type Call = readonly [ticket: number, statement: number, ...parameters: SqlValue[]];
export type CheckpointOrder = 'hold' | 'allow';
export type ToWorker = Call | CheckpointOrder | 'close';

export type Row = readonly SqlValue[];

/** Ticket and result by turns: rows, or why the statement failed. */
export type Results = readonly (number | readonly Row[] | string)[];

export type FromWorker =
  /** No answers follow. Unanswered calls may or may not be in the file. */
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'checkpoints' }
  /** A whole batch is committed, in `ms`. */
  | { readonly kind: 'answered'; readonly results: Results; readonly ms: number };

export interface EngineOptions {
  readonly path: string;
  /** Pages of 4 KiB; a larger write fails like a full disk. 0: no limit. */
  readonly maxPages: number;
  /** Written to the file. */
  readonly version?: string;
}

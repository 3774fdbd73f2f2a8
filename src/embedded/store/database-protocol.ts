import type { SqlValue } from './database-library.ts';

/**
 * Messages between the database's client, its engine, and the thread that may host the engine.
 * Arrays are flat, because a thread copies them on every call.
 */
/** Ticket, index of the statement, its parameters. */
export type Call = readonly [ticket: number, statement: number, ...parameters: SqlValue[]];
export type CheckpointOrder = 'hold' | 'allow';
export type ToWorker = Call | CheckpointOrder | 'close';

export type Row = readonly SqlValue[];

/**
 * Results of a batch: ticket and result by turns. A result is the rows, or the reason why its
 * statement failed.
 */
export type Results = readonly (number | readonly Row[] | string)[];

export type FromWorker =
  /** No more answers follow. Unanswered calls may or may not be in the file. */
  | { readonly kind: 'failed'; readonly message: string }
  /** A `CheckpointOrder` is carried out. */
  | { readonly kind: 'checkpoints' }
  /** A whole batch is committed. `ms` is the commit's duration. */
  | { readonly kind: 'answered'; readonly results: Results; readonly ms: number };

export interface EngineOptions {
  readonly path: string;
  /**
   * Maximum size of the file, in pages of 4 KiB; a larger write fails like a full disk. 0 means no
   * limit.
   */
  readonly maxPages: number;
  /** The daemon's version, written to the file; omitted if absent. */
  readonly version?: string;
}

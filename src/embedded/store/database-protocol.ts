import type { SqlValue } from './database-library.ts';

/**
 * Define what the database's client, its engine and the thread that may host it say to each other.
 * Flat arrays: a thread copies them on every call.
 */
/** Ticket, index of the statement, its parameters. */
export type Call = readonly [ticket: number, statement: number, ...parameters: SqlValue[]];
export type CheckpointOrder = 'hold' | 'allow';
export type ToWorker = Call | CheckpointOrder | 'close';

export type Row = readonly SqlValue[];

/**
 * The results of a whole batch: ticket and result in turn. A result is the rows, or why this one
 * statement failed.
 */
export type Results = readonly (number | readonly Row[] | string)[];

export type FromWorker =
  /** Nothing more will be answered. What was not answered may or may not be in the file. */
  | { readonly kind: 'failed'; readonly message: string }
  /** To a `CheckpointOrder`, once it was carried out. */
  | { readonly kind: 'checkpoints' }
  /** A whole batch, after its commit, and the milliseconds that it took. */
  | { readonly kind: 'answered'; readonly results: Results; readonly ms: number };

export interface EngineOptions {
  readonly path: string;
  /**
   * The file never grows beyond this many pages of 4 KiB; a write that needs more counts as a full
   * disk. 0: no limit.
   */
  readonly maxPages: number;
  /** The daemon's version, noted in the file. Absent: no note. */
  readonly version?: string;
}

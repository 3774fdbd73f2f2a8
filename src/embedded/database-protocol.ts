import type { SqlValue } from './database-library.ts';

/** What the database's client and its worker thread say to each other. Flat arrays: they are copied on every call. */

/** Ticket, index of the statement, its parameters. */
export type Call = readonly [ticket: number, statement: number, ...parameters: SqlValue[]];
export type ToWorker = Call | 'close';

export type Row = readonly SqlValue[];

/** A whole batch, after its commit: ticket and result in turn. A result is the rows, or why this one statement failed. */
export type Results = readonly (number | readonly Row[] | string)[];

export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'refused'; readonly why: RefusalToOpen; readonly message: string }
  /** Nothing more will be answered. What was not answered may or may not be in the file. */
  | { readonly kind: 'failed'; readonly message: string }
  | Results;

/** `locked`: another process holds it. `newer`: a later version wrote it. `foreign`: no database of ours. `broken`: the rest. */
export type RefusalToOpen = 'locked' | 'newer' | 'foreign' | 'broken';

export interface WorkerOptions {
  readonly path: string;
  /** The file never grows beyond this many pages of 4 KiB; a write that needs more counts as a full disk. 0: no limit. */
  readonly maxPages: number;
}

/** One requested write and its outcome. Contains neither secrets nor bodies. */
export interface AuditEntry {
  readonly requestId: string;
  /** Caller with a valid key. Absent without a valid key, and for the machine's owner. */
  readonly caller?: {
    readonly namespace: string;
    readonly team: string;
    readonly user: string;
    readonly role: string;
    readonly keyId: string;
  };
  /** Set if the request came by this channel, not over the API with a key. */
  readonly via?: 'control-socket';
  /** Name of the operation in the API document. */
  readonly operation: string;
  /** Path parameters. */
  readonly params?: Readonly<Record<string, string>>;
  /** Further ids of the subject, such as a new sandbox's id. */
  readonly target?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly errorCode?: string;
  /** The answer repeats that of an earlier request with the same Idempotency-Key. */
  readonly replayed?: true;
}

/**
 * An entry for a read that is worth counting: a read by an admin, a request to an endpoint of a
 * sandbox.
 */
export interface CountedEntry
  extends Required<Pick<AuditEntry, 'operation'>>, Pick<AuditEntry, 'params'> {
  readonly kind: 'read' | 'open';
  readonly caller: NonNullable<AuditEntry['caller']>;
}

/** Records every write, and counts reads. Methods neither throw nor wait. */
export interface AuditSink {
  /**
   * Records the entry with the current time. Counts entries that it can't keep, and refusals of one
   * key beyond 60 in a minute, and records the count.
   */
  note(entry: AuditEntry): void;
  /** Combines equal entries of a minute into one line. */
  count(entry: CountedEntry): void;
}

/** A line of the audit file, without its line end. */
export type AuditLine = string;

export interface RecentAuditLine {
  /** Position of the line; opaque. */
  readonly cursor: string;
  readonly line: AuditLine;
}

/** Lines of all replicas together that are available without reading files. */
export const RECENT_AUDIT_LINES = 5_000;
/** Most lines of one read. */
export const MOST_AUDIT_LINES_READ = 500;

/** The last RECENT_AUDIT_LINES lines of all replicas, for the API. The files are the truth. */
export interface RecentAudit {
  /**
   * Adds lines that this replica has written to its file, in order. Never throws or waits. Lines
   * are missing here if they can't be stored.
   */
  add(lines: readonly AuditLine[]): void;
  /**
   * Adds the lines of earlier runs at start, like `add`. Does nothing if the lines outlive the
   * replica.
   */
  restore(lines: readonly AuditLine[]): void;
  /**
   * Returns the lines before the cursor, or the last lines, newest first; empty at the end. Rejects
   * with `unavailable` if the store is unreachable.
   */
  before(cursor: string | undefined, most: number): Promise<readonly RecentAuditLine[]>;
}

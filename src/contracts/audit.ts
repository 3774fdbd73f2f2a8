/** Contains neither secrets nor bodies. */
export interface AuditEntry {
  readonly requestId: string;
  /** Absent without a valid key, and for the machine's owner. */
  readonly caller?: {
    readonly namespace: string;
    readonly team: string;
    readonly user: string;
    readonly role: string;
    readonly keyId: string;
  };
  readonly via?: 'control-socket';
  readonly operation: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly target?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly errorCode?: string;
  /** The answer repeats that of an earlier request with the same Idempotency-Key. */
  readonly replayed?: true;
}

/** A read that is worth counting: by an admin, or a request to an endpoint of a sandbox. */
export interface CountedEntry
  extends Required<Pick<AuditEntry, 'operation'>>, Pick<AuditEntry, 'params'> {
  readonly kind: 'read' | 'open';
  readonly caller: NonNullable<AuditEntry['caller']>;
}

/** Methods neither throw nor wait. */
export interface AuditSink {
  /**
   * Entries that can't be kept, and refusals of one key beyond 60 in a minute, are only counted.
   */
  note(entry: AuditEntry): void;
  count(entry: CountedEntry): void;
}

/** Without its line end. */
export type AuditLine = string;

export interface RecentAuditLine {
  /** Opaque. */
  readonly cursor: string;
  readonly line: AuditLine;
}

export const RECENT_AUDIT_LINES = 5_000;
export const MOST_AUDIT_LINES_READ = 500;

/** The last lines of all replicas, for the API. The files are the truth. */
export interface RecentAudit {
  /**
   * Lines that are in this replica's file, in order. Never throws or waits; lines are missing here
   * if they can't be stored.
   */
  add(lines: readonly AuditLine[]): void;
  /** Lines of earlier runs, at start. Does nothing if the lines outlive the replica. */
  restore(lines: readonly AuditLine[]): void;
  /**
   * Before the cursor, or the last lines, newest first; empty at the end. Rejects with
   * `unavailable`.
   */
  before(cursor: string | undefined, most: number): Promise<readonly RecentAuditLine[]>;
}

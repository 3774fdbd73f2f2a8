/** One write that was asked for, and how it went. Never a secret, never a body. */
export interface AuditEntry {
  readonly requestId: string;
  /**
   * Who asked: of a good key. Absent where there was none, and of what the owner of the machine
   * does.
   */
  readonly caller?: {
    readonly namespace: string;
    readonly team: string;
    readonly user: string;
    readonly role: string;
    readonly keyId: string;
  };
  /** Not over the API with a key, but by this way. */
  readonly via?: 'control-socket';
  /** The operation's name, as the API's document has it. */
  readonly operation: string;
  /** Says what stands in the path. */
  readonly params?: Readonly<Record<string, string>>;
  /** Says what else names the thing that it is about, such as a new sandbox's id. */
  readonly target?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly errorCode?: string;
  /** The answer is that of an earlier request of the same Idempotency-Key. */
  readonly replayed?: true;
}

/**
 * An entry for what changes nothing, and is worth a count: a read by an admin, a request to an
 * endpoint of a sandbox.
 */
export interface CountedEntry
  extends Required<Pick<AuditEntry, 'operation'>>, Pick<AuditEntry, 'params'> {
  readonly kind: 'read' | 'open';
  readonly caller: NonNullable<AuditEntry['caller']>;
}

/** Takes down every write, and counts of what was looked at. Nothing here throws or waits. */
export interface AuditSink {
  /**
   * Takes the moment with it. What can't be kept is counted, and the count is kept; so are refusals
   * of one key beyond 60 in a minute.
   */
  note(entry: AuditEntry): void;
  /** One line tells all of a minute that are alike. */
  count(entry: CountedEntry): void;
}

/** A line of the audit as it stands in its file, without the line's end. */
export type AuditLine = string;

export interface RecentAuditLine {
  /** Where it stands: opaque. */
  readonly cursor: string;
  readonly line: AuditLine;
}

/** Lines that are known without a look into the files, of all replicas together. */
export const RECENT_AUDIT_LINES = 5_000;
/** The most of one reading. */
export const MOST_AUDIT_LINES_READ = 500;

/**
 * The last lines of all replicas, RECENT_AUDIT_LINES of them, for those who ask over the API; the
 * files are the truth.
 */
export interface RecentAudit {
  /**
   * This replica's own, in order, when they are in its file. Never throws, never waits; where they
   * can't be told they are missing here.
   */
  add(lines: readonly AuditLine[]): void;
  /**
   * Adds the lines of earlier runs at the start, as `add` does. Does nothing where what was told
   * outlives the replica.
   */
  restore(lines: readonly AuditLine[]): void;
  /**
   * Gives the lines before the cursor, or the last, the newest first; none: there are no more.
   * Rejects with `unavailable` where they are out of reach.
   */
  before(cursor: string | undefined, most: number): Promise<readonly RecentAuditLine[]>;
}

/** The fields that name a caller in a line of the audit. */
export const whoOf = ({
  namespace,
  team,
  user,
  role,
  keyId,
}: NonNullable<AuditEntry['caller']>) => ({ namespace, team, user, role, keyId });

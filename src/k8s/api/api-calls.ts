import { type Metrics } from '../../contracts/metrics.ts';
import type { TraceScope } from '../../contracts/tracing.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { ServerClock } from './server-clock.ts';
import { type Query } from './request-target.ts';

export interface CallOptions {
  readonly query?: Query;
  /** Deadline of the call in ms; 5,000 by default. */
  readonly deadlineMs?: number;
}

export interface WriteOptions extends CallOptions {
  /**
   * Called right before the first byte is written. If it returns false, nothing is written, and the
   * write rejects with LeaseLost. Both sides give up a permitted write after WRITE_MS.
   */
  readonly permitted?: () => boolean;
}

export interface ListOptions {
  readonly deadlineMs?: number;
  /** Returns only the metadata of objects. */
  readonly metadataOnly?: boolean;
}

/** Preconditions of a deletion, and how to delete. */
export interface Removal {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  /** Deletes nothing, and is answered as if it did. */
  readonly dryRun?: boolean;
}

export interface ListQuery {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

export interface WatchQuery {
  readonly resourceVersion: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly timeoutSeconds: number;
  /** Silence in ms after which the connection counts as dead; 35,000 by default. */
  readonly silenceMs?: number;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: unknown;
}

/**
 * The API server's REST interface over kept connections. Paths are absolute and encoded. Objects
 * are plain JSON, which each kind parses by itself.
 *
 * Rejects with ApiRefused for an answer of 400 or more, and with NotSent if nothing was written
 * (refused connection, or no free connection by the deadline). Reads reject with ApiUnreachable
 * without a complete answer. Writes reject with OutcomeUnknown then, and for an answer of 500 or
 * more (with ApiRefused as its `cause`), since the API server's own write may have succeeded. Never
 * repeats a write.
 */
export interface ApiClient {
  /** Reads one object. Callers may share the answer, so they must not change it. */
  get(path: string, options?: CallOptions): Promise<unknown>;
  list(path: string, query: ListQuery, options?: ListOptions): Promise<unknown>;
  create(path: string, body: object, options?: WriteOptions): Promise<unknown>;
  /** PUT: conditional if the body has a `metadata.resourceVersion`. */
  replace(path: string, body: object, options?: WriteOptions): Promise<unknown>;
  /** A merge patch; null removes a field. */
  patch(path: string, body: object, options?: CallOptions): Promise<unknown>;
  /**
   * Refused with 409 if the object has another uid or resourceVersion, and with 404 if it does not
   * exist.
   */
  remove(path: string, removal?: Removal, options?: CallOptions): Promise<unknown>;
  /**
   * Yields the changes of a collection after a revision, with bookmarks. Ends when the API server
   * ends the watch, or at an abort. An error event throws ApiRefused (410: the revision is too
   * old). Reads with back-pressure.
   */
  watch(path: string, query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent>;
}

/**
 * Lanes with connections of their own. Claims never wait for refill, and each watch has its own
 * connection.
 */
export type LaneName = 'claims' | 'background' | 'watches';

export interface ApiServer {
  lane(name: LaneName): ApiClient;
  /**
   * Resolves once at most half of the lane is in use, or after a second. For work that must not
   * delay others' requests.
   */
  calm(name: LaneName): Promise<void>;
  /** Cuts every connection. */
  close(): Promise<void>;
}

export interface ApiServerDeps {
  readonly access: ClusterAccess;
  /** Sandpool's version, for the user agent. */
  readonly version: string;
  /** Receives the time of each answer. */
  readonly clock?: ServerClock;
  readonly metrics: Metrics;
  /** Adds our request's `traceparent`. Watches serve no single request and have none. */
  readonly traceScope?: TraceScope;
}

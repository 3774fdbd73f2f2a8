import { type Metrics } from '../../contracts/metrics.ts';
import type { TraceScope } from '../../contracts/tracing.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { ServerClock } from './server-clock.ts';
import { type Query } from './request-target.ts';

export interface CallOptions {
  readonly query?: Query;
  readonly deadlineMs?: number;
}

export interface WriteOptions extends CallOptions {
  /**
   * Called right before the first byte is written; if false, the write rejects with LeaseLost. Both
   * sides give up a permitted write after WRITE_MS.
   */
  readonly permitted?: () => boolean;
}

export interface ListOptions {
  readonly deadlineMs?: number;
  readonly metadataOnly?: boolean;
}

export interface Removal {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
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
  readonly silenceMs?: number;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: unknown;
}

/**
 * The API server's REST interface over kept connections. Paths are absolute and encoded. Rejects
 * with ApiRefused for an answer of 400 or more, and with NotSent if nothing was written. Reads
 * reject with ApiUnreachable without a complete answer; writes then reject with OutcomeUnknown, as
 * for an answer of 500 or more, since they may have succeeded. Never repeats a write.
 */
export interface ApiClient {
  /** Callers may share the answer, so they must not change it. */
  get(path: string, options?: CallOptions): Promise<unknown>;
  list(path: string, query: ListQuery, options?: ListOptions): Promise<unknown>;
  create(path: string, body: object, options?: WriteOptions): Promise<unknown>;
  /** Conditional if the body has a `metadata.resourceVersion`. */
  replace(path: string, body: object, options?: WriteOptions): Promise<unknown>;
  /** A merge patch; null removes a field. */
  patch(path: string, body: object, options?: CallOptions): Promise<unknown>;
  /** Refused with 409 if the object has another uid or resourceVersion. */
  remove(path: string, removal?: Removal, options?: CallOptions): Promise<unknown>;
  /**
   * Yields changes after a revision, with bookmarks and back-pressure, until the API server ends
   * the watch. Throws ApiRefused for an error event (410: the revision is too old).
   */
  watch(path: string, query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent>;
}

/** Claims never wait for refill, and each watch has its own connection. */
export type LaneName = 'claims' | 'background' | 'watches';

export interface ApiServer {
  lane(name: LaneName): ApiClient;
  /** Resolves once at most half of the lane is in use, or after a second. */
  calm(name: LaneName): Promise<void>;
  close(): Promise<void>;
}

export interface ApiServerDeps {
  readonly access: ClusterAccess;
  readonly version: string;
  readonly clock?: ServerClock;
  readonly metrics: Metrics;
  /** Watches serve no single request. */
  readonly traceScope?: TraceScope;
}

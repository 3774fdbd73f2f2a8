import { type Metrics } from '../../contracts/metrics.ts';
import type { TraceScope } from '../../contracts/tracing.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { ServerClock } from './server-clock.ts';
import { type Query } from './request-target.ts';

export interface CallOptions {
  readonly query?: Query;
  /** Milliseconds until the call has settled; 5,000 where unset. */
  readonly deadlineMs?: number;
}

export interface WriteOptions extends CallOptions {
  /**
   * Asked right before the first byte is written: where it answers false nothing is, and the write
   * rejects with LeaseLost. What it permits is given up by both sides after WRITE_MS.
   */
  readonly permitted?: () => boolean;
}

export interface ListOptions {
  readonly deadlineMs?: number;
  /** The objects come without anything but their metadata. */
  readonly metadataOnly?: boolean;
}

/** The conditions that an object must meet to be removed, and how it is removed. */
export interface Removal {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
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
  /** Without a byte after which the link counts as dead; 35,000 where unset. */
  readonly silenceMs?: number;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: unknown;
}

/**
 * The API server's REST interface over kept connections. Paths are absolute and encoded; objects go
 * in and come out as plain JSON, which the functions of each kind parse.
 *
 * Rejects with ApiRefused at an answer of 400 or more, with NotSent where nothing was written at
 * all (refused connection, no free connection by the deadline). Reads reject with ApiUnreachable
 * where no whole answer came; writes with OutcomeUnknown, also at an answer of 500 or more (its
 * `cause` is the ApiRefused): the API server gives those too when its own write may have landed. No
 * write is ever repeated here.
 */
export interface ApiClient {
  /** Reads one object. The answer may be another caller's too: it must not be changed. */
  get(path: string, options?: CallOptions): Promise<unknown>;
  list(path: string, query: ListQuery, options?: ListOptions): Promise<unknown>;
  create(path: string, body: object, options?: WriteOptions): Promise<unknown>;
  /** PUT: conditional where the body has a `metadata.resourceVersion`. */
  replace(path: string, body: object, options?: WriteOptions): Promise<unknown>;
  /** A merge patch: a field that is null is removed. */
  patch(path: string, body: object, options?: CallOptions): Promise<unknown>;
  /**
   * Refused with 409 where the object has another uid or resourceVersion, with 404 where there is
   * none.
   */
  remove(path: string, removal?: Removal, options?: CallOptions): Promise<unknown>;
  /**
   * Yields what happens to a collection after a revision, bookmarks included. Ends when the API
   * server ends it, or at an abort; an error in the stream is an ApiRefused too (410: the revision
   * is too old). Faster than its reader it stops at the socket.
   */
  watch(path: string, query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent>;
}

/**
 * The lanes, each of which shares connections. Claims never wait for refill, and each watch has a
 * connection of its own.
 */
export type LaneName = 'claims' | 'background' | 'watches';

export interface ApiServer {
  lane(name: LaneName): ApiClient;
  /**
   * Resolves once the lane is at most half in use, or after a second: for what others' requests are
   * not to wait for.
   */
  calm(name: LaneName): Promise<void>;
  /** Cuts every connection. */
  close(): Promise<void>;
}

export interface ApiServerDeps {
  readonly access: ClusterAccess;
  /** Sandpool's version, for the user agent. */
  readonly version: string;
  /** Told the time of each answer. */
  readonly clock?: ServerClock;
  readonly metrics: Metrics;
  /**
   * Requests that are made for one of ours carry its `traceparent`; watches, which are nobody's, do
   * not.
   */
  readonly traceScope?: TraceScope;
}

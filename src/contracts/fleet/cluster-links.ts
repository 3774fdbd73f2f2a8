import type { Duplex } from 'node:stream';
import type { LinkStatus } from '../../model/fleet/cluster.ts';
import type { Caller } from '../../model/tenant.ts';

/** A worker cluster from its manager's view. */
export interface LinkedCluster {
  readonly clusterId: string;
  readonly isConnected: boolean;
  /**
   * Time of the last heartbeat in ms; undefined if there was no heartbeat since the manager
   * started.
   */
  readonly lastHeartbeat: number | undefined;
  /** Links to this replica of the manager, one per replica of the cluster. */
  readonly links: readonly LinkView[];
  /**
   * Time in ms at which a daemon on a copy of the cluster's data was last refused; undefined if
   * there is no such daemon at present.
   */
  readonly copyRefusedAt: number | undefined;
}

/** A cluster with a join token that has never joined. */
export interface InvitedCluster {
  readonly clusterId: string;
  /** Expiry of the token in ms. */
  readonly endsAt: number;
}

/** A link of one replica of a cluster, from the manager's end. */
export interface LinkView {
  readonly linkId: string;
  /** The cluster's replica, as reported by the cluster. */
  readonly replica: string;
  /** Only `Open` links take new requests. */
  readonly status: LinkStatus;
  /** In ms. */
  readonly openedAt: number;
  /** Round trip of the last heartbeat in ms; undefined before the first. */
  readonly latencyMs: number | undefined;
  /**
   * Copies of promoted keys that the replica rebuilt since the link opened, because they were kept
   * with another pepper. Reported by the replica.
   */
  readonly keysRemade: number;
}

/** The only request for which a signed identity is valid. */
export interface RoutedRequest {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** The client's key, or a key that the manager made. */
  readonly idempotencyKey: string | undefined;
}

/**
 * Route to one worker cluster, valid while its link is open. Deliberately absent: requests and
 * answers; the worker's own HTTP server handles them.
 */
export interface ClusterRoute {
  readonly clusterId: string;
  /** Distinguishes this link from earlier and later links. */
  readonly linkId: string;
  /** Round trip of the last heartbeat in ms; 0 before the first. */
  readonly latencyMs: () => number;
  /**
   * Opens a connection to the worker's HTTP server. Accepts bytes only as fast as the other end
   * reads them, and ends with the link. Destroyed if the worker accepts no connection. Refuses with
   * CLUSTER_UNAVAILABLE if the link is closed.
   */
  readonly dial: () => Duplex;
  /** Signs the caller; valid once, for this request, on this link, for some seconds. */
  readonly identify: (caller: Caller, request: RoutedRequest) => string;
  /**
   * Checks that the other end is alive, and calls `silent` if nothing arrives within 2 s. The link
   * then sends nothing until it receives something. May be called for each request: one check runs
   * at a time. Returns a function that cancels the check.
   */
  readonly probe: (silent: () => void) => () => void;
}

export interface FleetLinks {
  readonly replica: string;
  /** Every joined cluster, sorted by id. */
  list(): readonly LinkedCluster[];
  /** Clusters with a join token that never joined, sorted by id. */
  invited(): readonly InvitedCluster[];
  /**
   * A route over one of the cluster's links, chosen round robin; undefined if no link is open and
   * accepts requests.
   */
  find(clusterId: string): ClusterRoute | undefined;
}

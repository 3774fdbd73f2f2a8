import type { Duplex } from 'node:stream';
import type { LinkStatus } from '../../model/fleet/cluster.ts';
import type { Caller } from '../../model/tenant.ts';

export interface LinkedCluster {
  readonly clusterId: string;
  readonly isConnected: boolean;
  /** In ms; undefined before the first heartbeat since the manager started. */
  readonly lastHeartbeat: number | undefined;
  /** To this replica of the manager, one per replica of the cluster. */
  readonly links: readonly LinkView[];
  /** In ms; undefined unless a daemon runs on a copy of the cluster's data now. */
  readonly copyRefusedAt: number | undefined;
}

export interface InvitedCluster {
  readonly clusterId: string;
  /** In ms. */
  readonly endsAt: number;
}

export interface LinkView {
  readonly linkId: string;
  readonly replica: string;
  /** Only `Open` links take new requests. */
  readonly status: LinkStatus;
  /** In ms. */
  readonly openedAt: number;
  /** Round trip of the last heartbeat, in ms; undefined before the first. */
  readonly latencyMs: number | undefined;
  /**
   * Copies of promoted keys that the replica rebuilt since the link opened, because they were kept
   * with another pepper.
   */
  readonly keysRemade: number;
}

export interface RoutedRequest {
  readonly method: string;
  readonly target: string;
  /** The client's, or one that the manager made. */
  readonly idempotencyKey: string | undefined;
}

/**
 * Valid while its link is open. Deliberately left out: requests and answers; the worker's own HTTP
 * server handles them.
 */
export interface ClusterRoute {
  readonly clusterId: string;
  readonly linkId: string;
  /** Round trip of the last heartbeat, in ms; 0 before the first. */
  readonly latencyMs: () => number;
  /**
   * Has back-pressure, and ends with the link. Destroyed if the worker accepts no connection.
   * Refuses with CLUSTER_UNAVAILABLE if the link is closed.
   */
  readonly dial: () => Duplex;
  /** Valid once, for this request, on this link, for some seconds. */
  readonly identify: (caller: Caller, request: RoutedRequest) => string;
  /**
   * Calls `silent` if nothing arrives within 2 s; the link then sends nothing until it receives
   * something. One check runs at a time. Returns a function that cancels it.
   */
  readonly probe: (silent: () => void) => () => void;
}

export interface FleetLinks {
  readonly replica: string;
  list(): readonly LinkedCluster[];
  invited(): readonly InvitedCluster[];
  /**
   * Chosen round robin over the cluster's links; undefined if none is open and accepts requests.
   */
  find(clusterId: string): ClusterRoute | undefined;
}

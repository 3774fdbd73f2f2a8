import type { Duplex } from 'node:stream';
import type { LinkStatus } from '../../model/fleet/cluster.ts';
import type { Caller } from '../../model/tenant.ts';

/** Describes a worker cluster as its manager sees it. */
export interface LinkedCluster {
  readonly clusterId: string;
  readonly isConnected: boolean;
  /** When it was heard of last, in ms; undefined: not since the manager started. */
  readonly lastHeartbeat: number | undefined;
  /** Those to this replica of the manager: of each replica of the cluster one. */
  readonly links: readonly LinkView[];
  /**
   * When a daemon on a copy of its data was last refused, in ms; undefined: none asks at this time.
   */
  readonly copyRefusedAt: number | undefined;
}

/** Names a cluster that may join by a token, and has never joined. */
export interface InvitedCluster {
  readonly clusterId: string;
  /** When the token ends, in ms. */
  readonly endsAt: number;
}

/** Describes one link, of one replica of a cluster, as the manager's end sees it. */
export interface LinkView {
  readonly linkId: string;
  /** The cluster's replica, as that one says. */
  readonly replica: string;
  /** Only `Open` ones take what is new. */
  readonly status: LinkStatus;
  /** In ms. */
  readonly openedAt: number;
  /** How long the last heartbeat took there and back, in ms; undefined: none came back yet. */
  readonly latencyMs: number | undefined;
  /**
   * Copies of promoted keys that the replica, as it says, had kept with another pepper than it has,
   * and made anew since the link was opened.
   */
  readonly keysRemade: number;
}

/** Names the one request that a signed identity is good for. */
export interface RoutedRequest {
  readonly method: string;
  /** Path and query as they are sent. */
  readonly target: string;
  /** The client sent it, or the manager made it. */
  readonly idempotencyKey: string | undefined;
}

/**
 * The way to one worker cluster, as long as its link stands. Deliberately absent: any word about
 * what is sent; the worker's own HTTP server answers it.
 */
export interface ClusterRoute {
  readonly clusterId: string;
  /** Tells this link from the one before it and after it. */
  readonly linkId: string;
  /** How long a heartbeat takes there and back, in ms, as it last did; 0: none came back yet. */
  readonly latencyMs: () => number;
  /**
   * Opens a connection to the worker's HTTP server. It passes no more than is read at its other
   * end, and ends with the link. Where the worker takes none, it is destroyed. Refuses with
   * CLUSTER_UNAVAILABLE where the link does not stand any more.
   */
  readonly dial: () => Duplex;
  /** Signs who asks; good once, for this request, on this link, for some seconds. */
  readonly identify: (caller: Caller, request: RoutedRequest) => string;
  /**
   * Looks whether anything still comes from the other end, and calls `silent` where nothing does
   * within 2 s: nothing is sent over the link then, until something does. May be called for each
   * request: one look at a time is taken. Returns the way to call it off.
   */
  readonly probe: (silent: () => void) => () => void;
}

/** The worker clusters of a manager. */
export interface FleetLinks {
  /** This replica of the manager. */
  readonly replica: string;
  /** Every cluster that has joined, by its id in order. */
  list(): readonly LinkedCluster[];
  /** Those that a token was made for and that never joined, by id in order: no clusters yet. */
  invited(): readonly InvitedCluster[];
  /**
   * A way over one of the links to it, in turn; undefined where none stands, or takes anything now.
   */
  find(clusterId: string): ClusterRoute | undefined;
}

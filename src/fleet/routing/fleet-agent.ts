import { Agent, type RequestOptions } from 'node:http';
import type { WayToCluster } from '../replication/fleet-operations.ts';

/** A connection that nobody uses is kept for so long: shorter than workers keep theirs. */
const KEPT_MS = 30_000;
/** Kept of each link: to begin one costs the worker as much as a connection of a client. */
const MOST_KEPT = 256;

export interface ClusterOptions extends RequestOptions {
  readonly way: WayToCluster;
}

/** Keeps connections over links, each for requests to its own cluster alone. */
export class FleetAgent extends Agent {
  constructor() {
    super({ keepAlive: true, maxFreeSockets: MOST_KEPT, timeout: KEPT_MS });
  }

  override getName(options?: ClusterOptions): string {
    if (!options) throw new Error('a connection is to a cluster');
    return options.way.linkId;
  }

  override createConnection(options: ClusterOptions): ReturnType<WayToCluster['dial']> {
    return options.way.dial();
  }
}

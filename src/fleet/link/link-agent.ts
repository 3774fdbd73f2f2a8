import { Agent, type RequestOptions } from 'node:http';
import type { ClusterRoute } from '../../contracts/fleet/cluster-links.ts';

/** A connection that nobody uses is kept for so long: shorter than workers keep theirs. */
const KEPT_MS = 30_000;

export interface LinkOptions extends RequestOptions {
  readonly route: ClusterRoute;
}

/** Keeps connections over links, each for requests over its own link. */
export class LinkAgent extends Agent {
  /** `mostKept` of each link: to begin one costs the worker as much as a connection of a client. */
  constructor(mostKept: number) {
    super({ keepAlive: true, maxFreeSockets: mostKept, timeout: KEPT_MS });
  }

  override getName(options?: LinkOptions): string {
    if (!options) throw new Error('a connection is over a link');
    return options.route.linkId;
  }

  override createConnection(options: LinkOptions): ReturnType<ClusterRoute['dial']> {
    return options.route.dial();
  }
}

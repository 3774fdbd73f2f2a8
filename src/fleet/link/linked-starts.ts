import type { Clock } from '../../contracts/clock.ts';
import type {
  ClusterStart,
  ClusterStarts,
  HeldStart,
} from '../../contracts/coordination/cluster-starts.ts';
import type { Log } from '../../contracts/log.ts';

export interface StartedLink {
  readonly isOver: boolean;
  readonly isSilent: boolean;
  probe(silent: () => void): void;
  /** May be repeated. */
  cut(why: string): void;
}

export interface LinkedStartsDeps {
  readonly held: ClusterStarts;
  readonly clock: Clock;
  readonly log: Log;
}

const SAY_MS = 1_000;
const AT_ONCE = 200;
/** A start that is refused for longer is a copy, not a restart. */
const SURE_MS = 5_000;
const GONE_MS = 30_000;

interface Linked {
  readonly start: string;
  readonly links: Set<StartedLink>;
}

interface Rival {
  readonly since: number;
  readonly lastAt: number;
  readonly isTold: boolean;
}

/**
 * Lets one start of a worker cluster with a local store be linked at a time: a running copy of the
 * data folder is another cluster under the same id. The linked start stays while it answers at any
 * replica. Without the coordination, each replica decides by its own links.
 */
export class LinkedStarts {
  readonly #deps: LinkedStartsDeps;
  readonly #linked = new Map<string, Linked>();
  readonly #rivals = new Map<string, Rival>();
  #callOff: () => void = () => {};
  #stopped = false;

  constructor(deps: LinkedStartsDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { clock } = this.#deps;
    if (this.#stopped) return;
    this.#callOff = clock.at(clock.now() + SAY_MS, () => void this.#say().then(() => this.start()));
  }

  stop(): void {
    this.#stopped = true;
    this.#callOff();
  }

  /** Resolves with whether the link may stay. Call `end` when it ends. */
  async take(link: StartedLink, given: ClusterStart): Promise<boolean> {
    const { clusterId, start } = given;
    const isFirst = await this.#isFirst(given);
    if (!isFirst) {
      this.#contest(clusterId);
      return false;
    }
    this.#cutOthers(given);
    if (link.isOver) {
      if (!this.#linked.has(clusterId)) this.#release(given);
      return false;
    }
    const linked = this.#linked.get(clusterId) ?? { start, links: new Set() };
    linked.links.add(link);
    this.#linked.set(clusterId, linked);
    return true;
  }

  end(link: StartedLink): void {
    for (const [clusterId, { start, links }] of this.#linked) {
      if (!links.delete(link) || links.size > 0) continue;
      this.#linked.delete(clusterId);
      this.#release({ clusterId, start });
    }
  }

  /** Time of the last refusal of another start, in ms. */
  rivalAt(clusterId: string): number | undefined {
    const rival = this.#rivals.get(clusterId);
    return rival?.isTold && this.#deps.clock.now() - rival.lastAt < GONE_MS
      ? rival.lastAt
      : undefined;
  }

  async #isFirst(given: ClusterStart): Promise<boolean> {
    try {
      const [held] = await this.#deps.held.holdStarts([given]);
      return held?.start === given.start;
    } catch {
      const { start = given.start } = this.#linked.get(given.clusterId) ?? {};
      return start === given.start;
    }
  }

  #release(given: ClusterStart): void {
    // an unreleased start expires
    this.#deps.held.releaseStart(given).catch(() => undefined);
  }

  #cutOthers({ clusterId, start }: ClusterStart): void {
    const linked = this.#linked.get(clusterId);
    if (!linked || linked.start === start) return;
    for (const link of [...linked.links]) link.cut('another start of the cluster replaced it');
  }

  async #say(): Promise<void> {
    const all = [...this.#linked].map(([clusterId, { start }]) => ({ clusterId, start }));
    for (let next = 0; next < all.length; next += AT_ONCE) {
      const asked = all.slice(next, next + AT_ONCE);
      const held = await this.#deps.held.holdStarts(asked).catch(() => []);
      for (const [n, each] of held.entries()) if (asked[n]) this.#hear(asked[n], each);
    }
    const gone = this.#deps.clock.now() - GONE_MS;
    for (const [clusterId, { lastAt }] of this.#rivals)
      if (lastAt <= gone) this.#rivals.delete(clusterId);
  }

  #hear(asked: ClusterStart, { start, isWanted }: HeldStart): void {
    const { clusterId } = asked;
    // the link ended during the call
    if (this.#linked.get(clusterId)?.start !== asked.start) return this.#release(asked);
    if (start !== asked.start) this.#cutOthers({ clusterId, start });
    if (isWanted || start !== asked.start) this.#contest(clusterId);
  }

  #contest(clusterId: string): void {
    this.#note(clusterId);
    for (const link of this.#linked.get(clusterId)?.links ?? [])
      link.probe(() => this.#yieldUnlessHeard(clusterId));
    this.#yieldUnlessHeard(clusterId);
  }

  #yieldUnlessHeard(clusterId: string): void {
    const links = [...(this.#linked.get(clusterId)?.links ?? [])];
    if (links.some(({ isSilent }) => !isSilent)) return;
    for (const link of links) link.cut('it is silent, and another start of the cluster is linked');
  }

  #note(clusterId: string): void {
    const { clock, log } = this.#deps;
    const now = clock.now();
    const before = this.#rivals.get(clusterId);
    const { since, isTold } =
      before && now - before.lastAt < GONE_MS ? before : { since: now, isTold: false };
    const isSure = now - since >= SURE_MS;
    this.#rivals.set(clusterId, { since, lastAt: now, isTold: isTold || isSure });
    if (isSure && !isTold) log.warn({ clusterId }, 'cluster-runs-twice');
  }
}

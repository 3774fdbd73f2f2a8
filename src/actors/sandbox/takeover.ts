import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { shardOf } from '../../model/shards.ts';
import type { RetirementLimiter } from './retirement-limiter.ts';
import type { PoolHost } from '../pool/pool-host.ts';
import type { Placement } from './sandbox-snapshot.ts';
import type { SandboxIndex } from './sandbox-index.ts';

export interface TakeoverDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Each resolves when its mirror shows all writes from before the call. */
  readonly mirrors: readonly (() => Promise<void>)[];
  readonly leads: (shard: number) => boolean;
  readonly index: Pick<SandboxIndex, 'poolUids' | 'startingIn' | 'dismissable' | 'placementOf'>;
  readonly pools: Pick<PoolHost, 'get' | 'lookUp'>;
  readonly tell: (id: string) => void;
  readonly retire: (id: string) => boolean;
  readonly retirements: Pick<RetirementLimiter, 'end'>;
  readonly lookAt: (poolUid: string, at: number) => void;
}

const MOST_GONE = 1_000;
const MOST_LOOKS = 8;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Mirrors catch up with the previous leader's writes first. Then it cleans up records whose process
 * never appears, and instances of deleted pools: each confirmed by an uncached read, never by the
 * mirror.
 */
export class Takeover {
  readonly #deps: TakeoverDeps;
  /** Uids are never reused. */
  readonly #gone = new RecentSet(MOST_GONE);
  readonly #looking = new Set<string>();
  readonly #waiting = new Set<string>();
  readonly #failures = new Map<string, { readonly count: number; readonly until: number }>();
  #catchingUp: Promise<void> | undefined;

  constructor(deps: TakeoverDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when all mirrors show all writes from before this call. Shards gained together share
   * one wait.
   */
  caughtUp(): Promise<void> {
    this.#catchingUp ??= Promise.resolve().then(async () => {
      this.#catchingUp = undefined;
      await Promise.all(this.#deps.mirrors.map((caughtUp) => caughtUp()));
    });
    return this.#catchingUp;
  }

  /** Calls `lead` in between, which begins to decide for its pools. */
  begin(shard: number, lead: () => void): void {
    const { index, tell } = this.#deps;
    const uids = index.poolUids().filter((uid) => shardOf(uid) === shard);
    for (const uid of uids) for (const id of index.startingIn(uid)) tell(id);
    lead();
    for (const uid of uids) this.retirePoolless(uid);
  }

  /** If this replica leads the pool's shard. May be called at any time. */
  retirePoolless(uid: string): void {
    const { pools, index, leads, retirements, retire } = this.#deps;
    const [left] = pools.get(uid) || !leads(shardOf(uid)) ? [] : index.dismissable(uid, '', 1);
    if (left === undefined) {
      this.#failures.delete(uid);
      return;
    }
    if (this.#gone.has(uid))
      return retirements.end(uid, (_, most) => index.dismissable(uid, '', most), retire);
    if (this.#looking.has(uid) || (this.#failures.get(uid)?.until ?? 0) > this.#deps.clock.now())
      return;
    if (this.#looking.size >= MOST_LOOKS) {
      this.#waiting.add(uid);
      return;
    }
    this.#looking.add(uid);
    void this.#look(uid, index.placementOf(left));
  }

  /** Retries with growing pauses. Never rejects. */
  async #look(uid: string, instance: Placement | undefined): Promise<void> {
    const { pools, clock, log, lookAt } = this.#deps;
    try {
      const found = instance && (await pools.lookUp(instance.owner.namespace, instance.poolName));
      if (found?.uid !== uid) this.#gone.add(uid);
      else if (!pools.get(uid)) throw new Error('it exists, but is not known here yet');
      this.#failures.delete(uid);
    } catch (error) {
      const { count } = this.#failures.get(uid) ?? { count: 0 };
      const until =
        clock.now() + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(count, 16));
      this.#failures.set(uid, { count: count + 1, until });
      log.warn({ poolUid: uid, error }, 'pool-not-read');
      lookAt(uid, until);
    }
    this.#looking.delete(uid);
    if (this.#gone.has(uid)) this.retirePoolless(uid);
    for (const next of this.#waiting) {
      if (this.#looking.size >= MOST_LOOKS) break;
      // a pool that needs no read any more leaves its slot to the next
      this.#waiting.delete(next);
      this.retirePoolless(next);
    }
  }
}

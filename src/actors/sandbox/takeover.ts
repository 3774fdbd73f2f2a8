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
  /** Each resolves once what was written before the call is in one of the mirrors. */
  readonly mirrors: readonly (() => Promise<void>)[];
  readonly leads: (shard: number) => boolean;
  readonly index: Pick<SandboxIndex, 'poolUids' | 'startingIn' | 'dismissable' | 'placementOf'>;
  readonly pools: Pick<PoolHost, 'get' | 'lookUp'>;
  /** Tells the sandbox that this replica leads. */
  readonly tell: (id: string) => void;
  /** Tells the sandbox to retire. */
  readonly retire: (id: string) => boolean;
  readonly retirements: Pick<RetirementLimiter, 'end'>;
  /** Has `retirePoolless` called at that moment. */
  readonly lookAt: (poolUid: string, at: number) => void;
}

const MOST_GONE = 1_000;
const MOST_LOOKS = 8;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Carries out what a replica does when it begins to lead a shard. First its mirrors catch up with
 * what the last leader wrote. Then it clears away what that one left unfinished: records whose
 * process never comes, and instances whose pool is no more. That a pool is no more it never
 * concludes from its mirror: it looks at the pool uncached first.
 */
export class Takeover {
  readonly #deps: TakeoverDeps;
  /** Pools that an uncached look did not find. A uid is never used again. */
  readonly #gone = new RecentSet(MOST_GONE);
  readonly #looking = new Set<string>();
  /** Pools that wait for a look of another to end. */
  readonly #waiting = new Set<string>();
  /** Pools at which the last look failed: how often in a row, and when the next one is due. */
  readonly #failures = new Map<string, { readonly count: number; readonly until: number }>();
  #catchingUp: Promise<void> | undefined;

  constructor(deps: TakeoverDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves once all mirrors show what was written before this call. Shards that are gained at the
   * same time share it.
   */
  caughtUp(): Promise<void> {
    this.#catchingUp ??= Promise.resolve().then(async () => {
      this.#catchingUp = undefined;
      await Promise.all(this.#deps.mirrors.map((caughtUp) => caughtUp()));
    });
    return this.#catchingUp;
  }

  /** Clears away what is left of the shard; `lead` begins to decide for its pools in between. */
  begin(shard: number, lead: () => void): void {
    const { index, tell } = this.#deps;
    const uids = index.poolUids().filter((uid) => shardOf(uid) === shard);
    for (const uid of uids) for (const id of index.startingIn(uid)) tell(id);
    lead();
    for (const uid of uids) this.retirePoolless(uid);
  }

  /**
   * Retires what is left of a pool that is no more, if this replica leads its shard. May be called
   * at any time.
   */
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

  /** Never rejects. A look that fails says nothing, and is repeated, less and less often. */
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
      log.warn(
        { poolUid: uid, error },
        'a pool could not be read; its instances stay until the pool is known to be gone',
      );
      lookAt(uid, until);
    }
    this.#looking.delete(uid);
    if (this.#gone.has(uid)) this.retirePoolless(uid);
    for (const next of this.#waiting) {
      if (this.#looking.size >= MOST_LOOKS) break;
      // what needs no look any more leaves the place to the one after it
      this.#waiting.delete(next);
      this.retirePoolless(next);
    }
  }
}

import type { PoolContext } from '../../machines/pool/events.ts';
import { mayRenew, replaceableOf, surplusOf } from '../../machines/pool/decisions.ts';
import type { PoolHostDeps } from './pool-host-deps.ts';
import { UNCLAIMED } from '../sandbox/sandbox-index.ts';

/** For a surplus that is too young to retire. */
const TRIM_AGAIN_MS = 5_000;

export interface PoolRetirementsDeps extends Pick<
  PoolHostDeps,
  'instances' | 'runtime' | 'planAt'
> {
  readonly contextOf: (uid: string) => PoolContext | undefined;
}

export class PoolRetirements {
  readonly #deps: PoolRetirementsDeps;

  constructor(deps: PoolRetirementsDeps) {
    this.#deps = deps;
  }

  /** Checks the surplus before each one, because it may have changed. */
  trim(uid: string): void {
    const {
      instances: { retirements },
      runtime,
      planAt,
      contextOf,
    } = this.#deps;
    const surplus = (): boolean => {
      const context = contextOf(uid);
      return context !== undefined && surplusOf(context) > 0;
    };
    const candidates = (_: string, most: number) => this.#dismissable(uid, most);
    retirements.end(uid, candidates, (id) => surplus() && this.#retire(id));
    if (surplus() && this.#dismissable(uid, 1).length === 0)
      planAt(uid, runtime.clock.now() + TRIM_AGAIN_MS);
  }

  /** Checks the permitted number before each one, because each is replaced at once. */
  replace(uid: string): void {
    const {
      instances: { index, retirements },
      runtime,
      contextOf,
    } = this.#deps;
    const revision = contextOf(uid)?.record.updateRevision ?? '';
    for (const as of UNCLAIMED) {
      const mayGo = (): boolean => {
        const context = contextOf(uid);
        return context !== undefined && replaceableOf(context, runtime.clock.now())[as] > 0;
      };
      const candidates = (_: string, most: number) => index.stale(uid, revision, { as, most });
      if (mayGo()) retirements.end(uid, candidates, (id) => mayGo() && this.#retire(id));
    }
  }

  renew(uid: string): void {
    const {
      instances: { index, retirements },
      runtime,
      contextOf,
    } = this.#deps;
    const candidates = (): readonly string[] => {
      const timeout =
        contextOf(uid)?.record.definition.startupTimeoutMs ?? Number.POSITIVE_INFINITY;
      const longest = index.longestUnready(uid, runtime.clock.now() - timeout);
      return longest === undefined ? [] : [longest];
    };
    const mayGo = (): boolean => {
      const context = contextOf(uid);
      return context !== undefined && mayRenew(context, runtime.clock.now());
    };
    retirements.end(uid, candidates, (id) => mayGo() && this.#retire(id));
  }

  endRunning(uid: string): void {
    const {
      instances: { index, retirements, tell },
      runtime,
    } = this.#deps;
    const candidates = (_: string, most: number) => index.claimedIn(uid, most);
    retirements.end(uid, candidates, (id) =>
      tell(id, { type: 'END', reason: 'force-deleted', now: runtime.clock.now() }),
    );
  }

  #retire(id: string): boolean {
    return this.#deps.instances.tell(id, { type: 'RETIRE', now: this.#deps.runtime.clock.now() });
  }

  /**
   * Most dispensable first. A surplus excludes starting instances and those younger than
   * `sparesMs`.
   */
  #dismissable(uid: string, most: number): readonly string[] {
    const {
      instances: { index },
      runtime,
      contextOf,
    } = this.#deps;
    const record = contextOf(uid)?.record;
    const sparesMs = record?.deleting === false ? record.decided?.sparesMs : undefined;
    const revision = record?.updateRevision ?? '';
    if (sparesMs === undefined) return index.dismissable(uid, revision, most);
    return index
      .createdBefore('idle', uid, { revision, moment: runtime.clock.now() - sparesMs })
      .slice(0, most);
  }
}

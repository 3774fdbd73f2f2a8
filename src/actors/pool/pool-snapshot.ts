import type { SnapshotFrom } from 'xstate';
import { phaseOf, type PoolPolicy } from '../../machines/pool/arithmetic.ts';
import { waitsForPlace } from '../../machines/pool/decisions.ts';
import type { PoolContext, Tallied } from '../../machines/pool/events.ts';
import type { poolMachine } from '../../machines/pool/machine.ts';
import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import {
  type PoolPhase,
  type PoolRecord,
  NO_INSTANCES,
  type PoolCounts,
} from '../../model/pools/pool.ts';
import { pathOf } from '../runtime/actor-host.ts';

export interface PoolSnapshot extends Tallied {
  readonly record: PoolRecord;
  readonly phase: PoolPhase;
  readonly conditions: readonly PoolCondition[];
}

export const shown = (context: PoolContext, policy: PoolPolicy): PoolSnapshot => ({
  record: context.record,
  counts: context.counts,
  updated: context.updated,
  phase: phaseOf(context, policy),
  conditions: context.conditions,
});

export interface PoolActorView {
  readonly context: PoolContext;
  readonly phase: PoolPhase;
  readonly state: string;
  readonly waitsForPlace: boolean;
}

export const wholeOf = (
  { context, value }: SnapshotFrom<typeof poolMachine>,
  now: number,
): PoolActorView => ({
  context,
  phase: phaseOf(context, context.policy),
  state: pathOf(value),
  waitsForPlace: waitsForPlace(context, now),
});

type Place = keyof PoolCounts;
type Counting = { -readonly [place in Place]: number };

export interface Move {
  readonly poolUid: string;
  readonly revision: string;
  readonly from: Place | undefined;
  readonly to: Place | undefined;
}

export class InstanceCounts {
  readonly #pools = new Map<
    string,
    { readonly all: Counting; readonly byRevision: Map<string, Counting> }
  >();

  move({ poolUid, revision, from, to }: Move): void {
    let pool = this.#pools.get(poolUid);
    if (!pool)
      this.#pools.set(poolUid, (pool = { all: { ...NO_INSTANCES }, byRevision: new Map() }));
    let own = pool.byRevision.get(revision);
    if (!own) pool.byRevision.set(revision, (own = { ...NO_INSTANCES }));
    for (const counting of [pool.all, own]) {
      if (from) counting[from] -= 1;
      if (to) counting[to] += 1;
    }
    if (to === undefined && isEmpty(own)) pool.byRevision.delete(revision);
    if (pool.byRevision.size === 0) this.#pools.delete(poolUid);
  }

  counted(poolUid: string, revision: string): Tallied {
    const pool = this.#pools.get(poolUid);
    const own = pool?.byRevision.get(revision);
    return {
      counts: pool ? { ...pool.all } : NO_INSTANCES,
      updated: own ? { ...own } : NO_INSTANCES,
    };
  }
}

const isEmpty = ({
  starting,
  idle,
  unavailable,
  running,
  stopping,
  retiring,
  failed,
}: PoolCounts): boolean =>
  starting + idle + unavailable + running + stopping + retiring + failed === 0;

import type { SnapshotFrom } from 'xstate';
import { phaseOf, type PoolPolicy } from '../../machines/pool/arithmetic.ts';
import type { PoolContext, Tallied } from '../../machines/pool/events.ts';
import type { poolMachine } from '../../machines/pool/machine.ts';
import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import type { PoolPhase, PoolRecord } from '../../model/pools/pool.ts';
import { pathOf } from '../runtime/state-path.ts';

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

/** All of it, for whoever looks inside. */
export interface PoolActorView {
  readonly context: PoolContext;
  readonly phase: PoolPhase;
  readonly state: string;
}

export const wholeOf = (
  { context, value }: SnapshotFrom<typeof poolMachine>,
  policy: PoolPolicy,
): PoolActorView => {
  return { context, phase: phaseOf(context, policy), state: pathOf(value) };
};

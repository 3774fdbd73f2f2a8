import type { AnyStateMachine } from 'xstate';
import { approvalMachine } from '../../machines/approval/machine.ts';
import { autoscalingGroupMachine } from '../../machines/autoscaling/group-machine.ts';
import { envMemberMachine } from '../../machines/env/member-machine.ts';
import { chartOf, everyNode, nameOf, waysOf } from '../../machines/machine-chart.ts';
import { poolMachine } from '../../machines/pool/machine.ts';
import { sandboxMachine } from '../../machines/sandbox/machine.ts';
import type { ActorKind } from '../../model/inspection.ts';

/** The path is dotted; the root's is empty. */
export interface MachineState {
  readonly path: string;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  readonly initial?: string;
  readonly onEntry: readonly string[];
  readonly ways: readonly MachineWay[];
}

/**
 * Without `event`, the machine takes it at once if its guard holds. Without `to`, the state stays.
 */
export interface MachineWay {
  readonly event?: string;
  readonly guard?: string;
  readonly to?: string;
  readonly actions: readonly string[];
}

export const MACHINES: Readonly<Record<ActorKind, AnyStateMachine>> = {
  sandbox: sandboxMachine,
  pool: poolMachine,
  member: envMemberMachine,
  group: autoscalingGroupMachine,
  approval: approvalMachine,
};

export const machineStates = (kind: ActorKind): readonly MachineState[] => {
  const { root } = MACHINES[kind];
  const ways = waysOf(root);
  return everyNode(root).map((node) => {
    const path = node.path.join('.');
    const initial = node.type === 'compound' ? node.initial.target[0]?.path.join('.') : undefined;
    return {
      path,
      type: node.type,
      initial,
      onEntry: node.entry.map(nameOf),
      ways: ways
        .filter(({ from }) => from.join('.') === path)
        .map(({ event, guard, to, actions }) => ({
          event: event || undefined,
          guard,
          to: to?.join('.'),
          actions,
        })),
    };
  });
};

export const machineMermaid = (kind: ActorKind, counts: ReadonlyMap<string, number>): string =>
  chartOf(MACHINES[kind], (path) =>
    countWithin(counts, path) > 0 ? ` (${countWithin(counts, path)})` : '',
  );

export const countWithin = (counts: ReadonlyMap<string, number>, path: string): number => {
  let sum = 0;
  for (const [state, count] of counts)
    if (path === '' || state === path || state.startsWith(`${path}.`)) sum += count;
  return sum;
};

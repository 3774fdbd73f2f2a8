import type { AnyStateMachine } from 'xstate';
import { approvalMachine } from '../../machines/approval/machine.ts';
import { autoscalingGroupMachine } from '../../machines/autoscaling/group-machine.ts';
import { envMemberMachine } from '../../machines/env/member-machine.ts';
import { chartOf, everyNode, nameOf, waysOf } from '../../machines/machine-chart.ts';
import { poolMachine } from '../../machines/pool/machine.ts';
import { sandboxMachine } from '../../machines/sandbox/machine.ts';
import type { ActorKind } from '../../model/inspection.ts';

/** One state of a machine. Paths are spelled with dots; the machine itself is the empty one. */
export interface MachineState {
  readonly path: string;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  /** The state inside a compound state that it begins in. */
  readonly initial?: string;
  readonly onEntry: readonly string[];
  readonly ways: readonly MachineWay[];
}

/**
 * Without an event it is taken at once where its guard holds; without `to` it stays where it is.
 */
export interface MachineWay {
  readonly event?: string;
  readonly guard?: string;
  readonly to?: string;
  readonly actions: readonly string[];
}

/** The machine of each kind of actor. */
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

/** The machine's chart as Mermaid, with how many actors stand in each state. */
export const machineMermaid = (kind: ActorKind, counts: ReadonlyMap<string, number>): string =>
  chartOf(MACHINES[kind], (path) =>
    countWithin(counts, path) > 0 ? ` (${countWithin(counts, path)})` : '',
  );

/** Counts those that stand in the state, or inside it. */
export const countWithin = (counts: ReadonlyMap<string, number>, path: string): number => {
  let sum = 0;
  for (const [state, count] of counts)
    if (path === '' || state === path || state.startsWith(`${path}.`)) sum += count;
  return sum;
};

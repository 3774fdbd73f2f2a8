import type { SnapshotFrom, StateValue } from 'xstate';
import { statusOf } from '../../machines/sandbox/arithmetic.ts';
import type { SandboxContext } from '../../machines/sandbox/events.ts';
import type { sandboxMachine } from '../../machines/sandbox/machine.ts';
import type { LaunchOrder, SandboxStatus } from '../../model/sandbox.ts';
import { pathOf } from '../runtime/state-path.ts';

/** What an actor shows of its instance. */
export interface SandboxSnapshot {
  /** The machine's top-level state. */
  readonly state: string;
  /** `stopping.releasing` and the like: the path in full. */
  readonly path: string;
  readonly status: SandboxStatus;
  readonly context: SandboxContext;
}

export const shown = ({ value, context }: SnapshotFrom<typeof sandboxMachine>): SandboxSnapshot => {
  const state = stateOf(value);
  return { state, path: pathOf(value), status: statusOf(state, context), context };
};

/** Its record, or what that will be. */
export const recordIn = ({
  record,
  launchOrder,
}: SandboxContext): LaunchOrder['record'] | undefined => record ?? launchOrder?.record;

/** The name of the top-level state. */
export const stateOf = (value: StateValue): string => {
  if (typeof value === 'string') return value;
  for (const state in value) return state;
  return '';
};

import type { SnapshotFrom, StateValue } from 'xstate';
import { statusOf } from '../../machines/sandbox/arithmetic.ts';
import type { SandboxContext, SandboxTag } from '../../machines/sandbox/events.ts';
import type { sandboxMachine } from '../../machines/sandbox/machine.ts';
import type { LaunchOrder, SandboxStatus } from '../../model/sandbox.ts';
import { pathOf } from '../runtime/state-path.ts';

type Snapshot = SnapshotFrom<typeof sandboxMachine>;

/** Describes what an actor shows of its instance. */
export interface SandboxSnapshot {
  /** The machine's top-level state. */
  readonly state: string;
  /** `stopping.releasing` and the like: the path in full. */
  readonly path: string;
  readonly status: SandboxStatus;
  readonly tags: ReadonlySet<SandboxTag>;
  readonly context: SandboxContext;
}

export const shown = (snapshot: Snapshot): SandboxSnapshot => {
  const { value, context } = snapshot;
  const state = stateOf(value);
  return {
    state,
    path: pathOf(value),
    status: statusOf(state, context),
    tags: tagsOf(snapshot),
    context,
  };
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

/** XState types tags as text; the machine has no others. */
export const tagsOf = ({ tags }: Pick<Snapshot, 'tags'>): ReadonlySet<SandboxTag> =>
  tags as ReadonlySet<string> as ReadonlySet<SandboxTag>;

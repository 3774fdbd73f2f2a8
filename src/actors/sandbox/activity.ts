import type { Activity } from '../../contracts/coordination/activity.ts';
import type { SandboxContext, SandboxEvent } from '../../machines/sandbox/events.ts';

/** Events that count as activity in a sandbox. */
const ACTIVITY: ReadonlySet<SandboxEvent['type']> = new Set<SandboxEvent['type']>([
  'ACTIVE',
  'WORK_BEGAN',
  'WORK_ENDED',
  'AMENDED',
]);

export interface Happened {
  readonly event: SandboxEvent;
  readonly before: SandboxContext;
  readonly after: SandboxContext;
}

/** Makes known beyond this replica what happens in a sandbox, and what goes on there. */
export const publishActivity = (
  activity: Pick<Activity, 'touch' | 'work'>,
  { event, before, after: { id, working, record } }: Happened,
): void => {
  if (!ACTIVITY.has(event.type)) return;
  activity.touch(id, record?.claim?.idleTimeoutMs ?? 0);
  if (working > 0 || before.working > 0) activity.work(id, working > 0);
};

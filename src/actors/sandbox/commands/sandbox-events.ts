import type { EventFeed } from '../../runtime/event-feed.ts';
import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import type { History } from '../../../contracts/history.ts';
import type { EventRecord, LifecycleEvent } from '../../../model/event.ts';
import { isInstanceId, type InstanceId } from '../../../model/identifiers.ts';
import { sandboxNotFound } from '../../../model/refusals.ts';
import type { FinishedSandbox } from '../../../model/sandbox.ts';
import { sameTenant, type Caller, type Tenant } from '../../../model/tenant.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { currentSandbox } from './find-sandbox.ts';

export interface SandboxEventsDeps {
  readonly supervisor: Supervisor;
  readonly history: History;
  readonly events: EventFeed;
}

const MOST_EVENTS = 50;

/**
 * The last 50, oldest first (operation `GET /sandboxes/{sandboxId}/events`). Record and history
 * show events that no crash can lose; the rest are stored ones.
 */
export const sandboxEvents =
  (deps: SandboxEventsDeps): SandboxOperations['sandboxEvents'] =>
  async (caller, sandboxId) => {
    if (!isInstanceId(sandboxId)) throw sandboxNotFound();
    const shown =
      shownBy(deps.supervisor.sandbox(sandboxId)) ??
      shownByHistory(await deps.history.find(sandboxId)) ??
      shownBy(await currentSandbox(deps.supervisor, sandboxId, caller.namespace));
    if (!shown || !mayRead(caller, shown.owner)) throw sandboxNotFound();
    const kept = await deps.events.eventsOf(sandboxId);
    return [...shown.events, ...kept]
      .toSorted((a, b) => rankOf(a) - rankOf(b) || a.at - b.at)
      .slice(-MOST_EVENTS);
  };

const mayRead = (caller: Caller, owner: Tenant): boolean =>
  caller.role === 'admin' || sameTenant(owner, caller);

interface Shown {
  readonly owner: Tenant;
  readonly events: readonly EventRecord[];
}

const shownBy = (live: SandboxSnapshot | undefined): Shown | undefined => {
  const record = live?.context.record ?? live?.context.launchOrder?.record;
  if (!live || !record) return undefined;
  const { context } = live;
  const claim = context.record?.claim;
  const { gone } = context;
  const end = gone && (context.end ?? { reason: 'lost' as const, exitCode: gone.exitCode });
  return eventsFrom(
    { id: record.id, owner: claim?.owner ?? record.poolOwner, poolName: record.poolName },
    {
      createdAt: record.createdAt,
      startedAt: context.startedAt,
      claimedAt: claim?.claimedAt,
      completed: gone && end && { at: gone.at, end },
    },
  );
};

const shownByHistory = (finished: FinishedSandbox | undefined): Shown | undefined => {
  if (!finished) return undefined;
  const { createdAt, startedAt, claimedAt, terminatedAt, endReason, exitCode } = finished;
  return eventsFrom(finished, {
    createdAt,
    startedAt,
    claimedAt,
    completed: { at: terminatedAt, end: { reason: endReason, exitCode } },
  });
};

interface Times {
  readonly createdAt: number | undefined;
  readonly startedAt: number | undefined;
  readonly claimedAt: number | undefined;
  readonly completed:
    | { readonly at: number; readonly end: Extract<LifecycleEvent, { reason: 'Completed' }>['end'] }
    | undefined;
}

const eventsFrom = (
  {
    id,
    owner,
    poolName,
  }: { readonly id: InstanceId; readonly owner: Tenant; readonly poolName: string },
  times: Times,
): Shown => {
  const base = { sandboxId: id, owner, poolName };
  const { createdAt, startedAt, claimedAt, completed } = times;
  return {
    owner,
    events: [
      ...(createdAt === undefined ? [] : [{ ...base, at: createdAt, reason: 'Created' as const }]),
      ...(startedAt === undefined ? [] : [{ ...base, at: startedAt, reason: 'Started' as const }]),
      ...(claimedAt === undefined ? [] : [{ ...base, at: claimedAt, reason: 'Claimed' as const }]),
      ...(completed === undefined
        ? []
        : [{ ...base, at: completed.at, reason: 'Completed' as const, end: completed.end }]),
    ],
  };
};

/** By a sandbox's life, not by replicas' clocks. Stored events come between claim and end. */
const rankOf = ({ reason }: EventRecord): number => {
  switch (reason) {
    case 'Created':
      return 0;
    case 'Started':
      return 1;
    case 'Claimed':
      return 2;
    case 'Killing':
      return 4;
    case 'Completed':
      return 5;
    default:
      return 3;
  }
};

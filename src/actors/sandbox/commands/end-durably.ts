import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { InstanceId } from '../../../model/identifiers.ts';
import type { EndReason } from '../../../model/sandbox.ts';

const DEADLINE_MS = 5_000;

/** Waits up to 5 s. Undefined after the actor's end. */
export const endDurably = async (
  { supervisor, clock }: { readonly supervisor: Supervisor; readonly clock: Clock },
  id: InstanceId,
  reason: EndReason,
): Promise<SandboxSnapshot | undefined> => {
  const until = clock.now() + DEADLINE_MS;
  let end: SandboxSnapshot | undefined;
  do {
    supervisor.send(id, { type: 'END', reason, now: clock.now() });
    end = await supervisor.until(id, isEndDurable, until);
    // A concurrent claim may have won over the retirement.
  } while (end?.state === 'running' && clock.now() < until);
  return end;
};

/** Whether a requested end can no longer be undone. */
export const isEndDurable = (snapshot: SandboxSnapshot | undefined): boolean =>
  snapshot?.tags.has('endNotDurable') !== true;

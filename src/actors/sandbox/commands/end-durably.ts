import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { InstanceId } from '../../../model/identifiers.ts';
import type { EndReason } from '../../../model/sandbox.ts';

const DEADLINE_MS = 5_000;

/**
 * Tells a sandbox to end, and waits until that is durable; 5 s at most. Returns it as it stands
 * then; undefined: it is no more.
 */
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
    // A claim that was under way may have won over the retirement: then the sandbox is asked to
    // end once more.
  } while (end?.state === 'running' && clock.now() < until);
  return end;
};

/** Tells whether nothing can undo the end of a sandbox that was told to end. */
export const isEndDurable = (snapshot: SandboxSnapshot | undefined): boolean =>
  snapshot?.tags.has('endNotDurable') !== true;

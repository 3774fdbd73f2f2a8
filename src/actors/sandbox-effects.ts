import type { Coordination } from '../contracts/coordination.ts';
import type { History } from '../contracts/history.ts';
import { OutcomeUnknown, type SandboxDriver } from '../contracts/sandbox-driver.ts';
import type { Clock } from '../contracts/clock.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { SandboxEvent, SandboxIntent } from '../machines/sandbox-events.ts';

export interface SandboxEffectsDeps {
  readonly driver: SandboxDriver;
  readonly history: History;
  readonly coordination: Coordination;
  readonly clock: Clock;
}

type DriverIntent = Exclude<SandboxIntent, { type: 'report-start' }>;

/**
 * Carries one intent out against driver, history and quota, and resolves with the event that tells how it went; with none
 * after a look that failed, which the state's deadline repeats. Never rejects.
 */
export const sandboxEffects = (deps: SandboxEffectsDeps) => async (id: InstanceId, intent: DriverIntent): Promise<SandboxEvent | undefined> => {
  const { driver, clock } = deps;
  try {
    switch (intent.type) {
      case 'launch': return { type: 'LAUNCHED', record: await driver.launch(intent.birth) };
      case 'claim': return { type: 'CLAIMED', record: await driver.claim(intent.seen, intent.claim), now: clock.now() };
      case 'retire': await driver.retire(id, intent.seen); return { type: 'RETIRED', now: clock.now() };
      case 'release': await driver.release(id, intent.end); return { type: 'RELEASED', now: clock.now() };
      case 'look': return { type: 'FACT', fact: await driver.read(id), now: clock.now() };
      case 'close': return await close(deps, id, intent);
    }
  } catch (error) {
    return unsettled(intent, error, clock.now());
  }
};

/** History first, then the quota, then the record: the record is history's outbox. */
const close = async ({ driver, history, coordination }: SandboxEffectsDeps, id: InstanceId, intent: Extract<DriverIntent, { type: 'close' }>): Promise<SandboxEvent> => {
  if (intent.finished) {
    await history.record(intent.finished);
    await coordination.release(intent.finished.owner, 'sandboxes', id);
  }
  await driver.forget(id);
  return { type: 'CLOSED' };
};

const unsettled = (intent: DriverIntent, error: unknown, now: number): SandboxEvent | undefined => {
  switch (intent.type) {
    case 'launch': return error instanceof OutcomeUnknown
      ? { type: 'LAUNCH_UNKNOWN', now }
      : { type: 'LAUNCH_REFUSED', reason: error instanceof Error ? error.message : String(error) };
    case 'claim': return { type: 'CLAIM_UNSETTLED', now };
    case 'retire': return { type: 'RETIRE_UNSETTLED', now };
    case 'release': return { type: 'RELEASE_UNSETTLED', now };
    case 'look': return undefined;
    case 'close': return { type: 'CLOSE_UNSETTLED', now };
  }
};

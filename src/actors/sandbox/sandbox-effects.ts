import { RESERVATION_MS } from '../../contracts/coordination/quotas.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { History } from '../../contracts/history.ts';
import {
  LeaseLost,
  NoPlace,
  OutcomeUnknown,
  type SandboxDriver,
  DefinitionRefused,
  RecordConflict,
} from '../../contracts/sandbox-driver.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { PoolEvent } from '../../machines/pool/events.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { SandboxEvent, SandboxIntent } from '../../machines/sandbox/events.ts';
import { isPausedAtEnd } from '../../model/pools/claim-rules.ts';

export interface SandboxEffectsDeps {
  readonly driver: SandboxDriver;
  readonly history: History;
  readonly coordination: Coordination;
  readonly clock: Clock;
}

/**
 * Longest delay of a DELETE's answer if the mark can't be written. Without the mark, other replicas
 * trust their mirrors, which usually show the end within this time.
 */
const MARK_MS = 500;

type DriverIntent = Exclude<SandboxIntent, { type: 'report-start' }>;

/**
 * After a failed read it resolves with undefined, and the state's deadline retries. `held`: whether
 * an autonomous intent may still run. Never rejects.
 */
export const sandboxEffects = (deps: SandboxEffectsDeps) => {
  const { driver, clock } = deps;
  const pausesAtEnd = new PausesAtEnd(deps);
  return async (
    id: InstanceId,
    intent: DriverIntent,
    held: () => boolean,
  ): Promise<SandboxEvent | undefined> => {
    try {
      switch (intent.type) {
        case 'launch': {
          const record = await driver.launch(intent.launchOrder, held);
          return { type: 'LAUNCHED', record, now: clock.now() };
        }
        case 'claim':
          return await claim(deps, id, intent);
        case 'retire':
          await driver.retire(id, intent.seen, intent.namespace);
          return { type: 'RETIRED', now: clock.now() };
        case 'release':
          await release(deps, id, intent);
          return { type: 'RELEASED', now: clock.now() };
        case 'confirm-expiry':
          return (await pausesAtEnd.pause(id, intent)) ?? (await confirmExpiry(deps, id, intent));
        case 'look':
          return { type: 'FACT', fact: await driver.read(id), now: clock.now() };
        case 'close':
          return await close(deps, id, intent);
      }
    } catch (error) {
      return outcomeUnknown(intent, error, clock.now());
    }
  };
};

/**
 * Only while its reservation holds: another claim may have taken it from a repeated claim, or from
 * a stopped replica (SIGSTOP, a paused VM).
 */
const claim = async (
  { driver, coordination, clock }: SandboxEffectsDeps,
  id: InstanceId,
  { claim, seen }: Extract<DriverIntent, { type: 'claim' }>,
): Promise<SandboxEvent> => {
  const now = clock.now();
  const late = now - claim.claimedAt > RESERVATION_MS;
  if (late && !(await coordination.stillReserved(claim.owner, 'sandboxes', { name: id })))
    return { type: 'CLAIM_OUTCOME_UNKNOWN', now: clock.now() };
  const until = (late ? now : claim.claimedAt) + RESERVATION_MS;
  return {
    type: 'CLAIMED',
    record: await driver.claim(seen, claim, () => clock.now() <= until),
    now: clock.now(),
  };
};

const release = async (
  { driver, coordination, clock }: SandboxEffectsDeps,
  id: InstanceId,
  { end }: Extract<DriverIntent, { type: 'release' }>,
): Promise<void> => {
  const marked = coordination.markEnded(id, end).then(
    () => true,
    () => false,
  );
  await driver.release(id, end);
  let cancel = (): void => undefined;
  const heard = new Promise<void>((resolve) => {
    cancel = clock.at(clock.now() + MARK_MS, resolve);
  });
  await Promise.race([heard, marked.then((isMarked) => (isMarked ? undefined : heard))]);
  cancel();
};

/**
 * The clock decides maximum lifetime and `endsAt`. Coordination decides idle timeouts, because it
 * knows the activity on all replicas.
 */
const confirmExpiry = async (
  { coordination, clock }: SandboxEffectsDeps,
  id: InstanceId,
  { reason, claim }: Extract<DriverIntent, { type: 'confirm-expiry' }>,
): Promise<SandboxEvent> => {
  if (reason !== 'idle-timeout') return { type: 'EXPIRED', reason, now: clock.now() };
  const expiry = await coordination.expire(id, claim);
  return expiry.expired
    ? { type: 'EXPIRED', reason, now: clock.now() }
    : { type: 'STILL_ACTIVE', activeAt: expiry.activeAt, now: clock.now() };
};

/** Writes history, then the quota, then removes the record: the record is history's outbox. */
const close = async (
  { driver, history, coordination }: SandboxEffectsDeps,
  id: InstanceId,
  intent: Extract<DriverIntent, { type: 'close' }>,
): Promise<SandboxEvent> => {
  if (intent.finished) {
    // Another replica may have handled the request to end it, and knows the reason.
    const known = intent.finished.endReason === 'lost' ? await coordination.ended(id) : undefined;
    await history.record(known ? { ...intent.finished, endReason: known.reason } : intent.finished);
    await coordination.release(intent.finished.owner, 'sandboxes', id);
    // Other mirrors may be behind.
    await coordination.markEnded(
      id,
      known ?? { reason: intent.finished.endReason, exitCode: intent.finished.exitCode },
    );
  }
  await driver.forget(id);
  return { type: 'CLOSED' };
};

const outcomeUnknown = (
  intent: DriverIntent,
  error: unknown,
  now: number,
): SandboxEvent | undefined => {
  switch (intent.type) {
    case 'launch':
      return error instanceof OutcomeUnknown
        ? { type: 'LAUNCH_UNKNOWN', now }
        : error instanceof LeaseLost
          ? { type: 'NOT_LEADING', now }
          : error instanceof NoPlace
            ? { type: 'LAUNCH_DEFERRED', reason: error.message }
            : {
                type: 'LAUNCH_REFUSED',
                reason: error instanceof Error ? error.message : String(error),
              };
    case 'claim':
      return { type: 'CLAIM_OUTCOME_UNKNOWN', now };
    case 'retire':
      return { type: 'RETIRE_OUTCOME_UNKNOWN', now };
    case 'release':
      return { type: 'RELEASE_OUTCOME_UNKNOWN', now };
    case 'look':
    case 'confirm-expiry':
      return undefined;
    case 'close':
      return { type: 'CLOSE_OUTCOME_UNKNOWN', now };
  }
};

export const startReport = (
  { outcome, reason }: Extract<SandboxIntent, { type: 'report-start' }>,
  revision: string,
  now: number,
): PoolEvent => {
  switch (outcome) {
    case 'started':
      return { type: 'INSTANCE_STARTED', revision, now };
    case 'failed':
      return { type: 'START_FAILED', revision, reason, now };
    case 'refused':
      return { type: 'START_FAILED', revision, reason, now, isRefused: true };
    case 'deferred':
      return { type: 'START_DEFERRED', reason, now };
  }
};

/** False if a request waits for the intent. */
export const isLeaders = (intent: SandboxIntent): boolean => {
  switch (intent.type) {
    case 'launch':
      return intent.launchOrder.record.claimBy === undefined;
    case 'confirm-expiry':
    case 'close':
      return true;
    case 'retire':
    case 'release':
      return !intent.asked;
    case 'look':
      return intent.patient === true;
    default:
      return false;
  }
};

/** A pause at the end time is retried this long before the sandbox ends after all. */
const PAUSE_MS = 30_000;

interface PausesAtEndDeps {
  readonly driver: Pick<SandboxDriver, 'read' | 'amend'>;
  readonly clock: Clock;
}

export class PausesAtEnd {
  readonly #deps: PausesAtEndDeps;
  /** Retries of earlier due pauses count from here. */
  readonly #began: number;
  readonly #underWay = new Set<InstanceId>();

  constructor(deps: PausesAtEndDeps) {
    this.#deps = deps;
    this.#began = deps.clock.now();
  }

  /**
   * Returns the current fact if the record has changed, undefined if the sandbox is to end. Rejects
   * if the caller should retry.
   */
  async pause(
    id: InstanceId,
    { reason, claim }: Extract<SandboxIntent, { type: 'confirm-expiry' }>,
  ): Promise<SandboxEvent | undefined> {
    const { driver, clock } = this.#deps;
    const now = clock.now();
    if (reason === 'idle-timeout' || !isPausedAtEnd(claim, now)) return undefined;
    if (this.#underWay.has(id)) throw new Error('its pause is in progress');
    this.#underWay.add(id);
    try {
      // An undone pause may have moved the end time.
      const fact = await driver.read(id);
      const { record } = fact;
      const known = record?.state === 'claimed' ? record.claim : undefined;
      if (!record || !known || known.pausedAt !== undefined || !isPausedAtEnd(known, now))
        return { type: 'FACT', fact, now: clock.now() };
      const paused = await driver.amend(id, { pausedAt: now }, record.revision);
      return { type: 'AMENDED', record: paused, now: clock.now() };
    } catch (error) {
      const { endsAt = 0 } = claim;
      const isOver = now >= Math.max(endsAt, this.#began) + PAUSE_MS;
      const isTried = isOver && !(error instanceof RecordConflict);
      if (!isTried && !(error instanceof DefinitionRefused)) throw error;
      return undefined;
    } finally {
      this.#underWay.delete(id);
    }
  }
}

import type {
  End,
  EndReason,
  FinishedSandbox,
  InstanceRecord,
  SandboxStatus,
} from '../../model/sandbox.ts';
import type { SandboxContext } from './events.ts';

/** How long an unanswered effect waits before it is looked at again. */
export const RETRY_MS = 1_000;

/** How long what is the leader's to do is left to it, before it is looked at again who leads. */
export const LEADER_MS = 5_000;

/**
 * How long what was told to end may take after it should have ended by force, before it is looked
 * at: whoever runs it says so when it has, and a look costs. Longer than the driver leaves it
 * before it ends it for good.
 */
export const OVERRUN_MS = 6_000;

/** How long a launch may stay unanswered before it is repeated under the same id. */
export const LAUNCH_MS = 15_000;

/** How long a claim that did not land waits before it is written again. */
export const CLAIM_REPEAT_MS = 100;

/**
 * How long an instance must live to count as started: one whose command ends at once would else be
 * replaced without pause.
 */
export const STEADY_MS = 10_000;

const OUR_DOING: ReadonlySet<EndReason> = new Set([
  'deleted',
  'force-deleted',
  'idle-timeout',
  'max-lifetime',
  'claim-failed',
]);

/** It was told to end, or ran out; not merely retired, and not dead by itself. */
export const isOurDoing = (end: End | undefined): boolean =>
  end !== undefined && OUR_DOING.has(end.reason);

const FAILURES: ReadonlySet<EndReason> = new Set([
  'start-failed',
  'start-timeout',
  'lost',
  'exited',
  'oom-killed',
  'killed',
  'container-ended',
]);

/**
 * The wire status of a machine state. `claiming` is still Idle; an unclaimed instance that died
 * shows Failed until it is cleared away.
 */
export const statusOf = (state: string, context: SandboxContext): SandboxStatus => {
  switch (state) {
    // One that was told to end before its birth was known to have landed only waits to be cleared
    // away.
    case 'starting':
      return context.end ? 'Stopping' : 'Starting';
    case 'idle':
    case 'claiming':
      return 'Idle';
    case 'running':
      return 'Running';
    case 'completed':
      return 'Completed';
    // What nobody claimed has failed once nothing of it runs.
    default:
      return context.record?.claim === undefined &&
        context.gone &&
        context.end &&
        FAILURES.has(context.end.reason)
        ? 'Failed'
        : 'Stopping';
  }
};

/** The history record of a claimed instance that ended; undefined where nobody ever held it. */
export const finishedOf = (
  context: SandboxContext,
  record: InstanceRecord | undefined,
): FinishedSandbox | undefined => {
  if (!record?.claim) return undefined;
  const at = context.gone?.at ?? record.claim.claimedAt;
  return {
    id: record.id,
    poolUid: record.poolUid,
    poolName: record.poolName,
    owner: record.claim.owner,
    createdAt: record.createdAt,
    claimedAt: record.claim.claimedAt,
    startedAt: context.startedAt,
    terminatedAt: at,
    recycledAt: at,
    cpu: record.cpu,
    memory: record.memory,
    containerImages: record.containerImages,
    endReason: context.end?.reason ?? 'lost',
    exitCode: context.end?.exitCode ?? null,
  };
};

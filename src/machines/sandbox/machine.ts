import { ordered, restored } from './arithmetic.ts';
import { sandboxSetup } from './setup.ts';
import { starting } from './starting.ts';
import { stopping } from './stopping.ts';

/** A claim in progress: its write succeeded, failed, or its outcome is being determined. */
const claiming = sandboxSetup.createStateConfig({
  initial: 'writing',
  tags: ['endNotDurable'],
  on: {
    CLAIMED: [
      { guard: 'ending', target: 'stopping', actions: 'keepRecord' },
      { target: 'running', actions: ['keepRecord', 'beginRunning'] },
    ],
    END: { actions: 'noteEnd' },
  },
  states: {
    writing: {
      description: 'a claim of it is being written',
      entry: 'claim',
      on: {
        // Our claim or another's; in the latter case ours cannot succeed any more.
        FACT: [
          { guard: 'shownClaimed', target: 'deciding', actions: 'learn' },
          { actions: 'learn' },
        ],
        CLAIM_OUTCOME_UNKNOWN: { target: 'verifying' },
        DEADLINE: { guard: 'due', target: 'verifying' },
      },
    },
    /** The write failed or has an unknown outcome; the record decides. */
    verifying: {
      description: 'a claim failed, or its outcome is unknown; its record is being read',
      entry: ['awaitRetry', 'look'],
      on: {
        FACT: [
          {
            guard: 'recordGone',
            target: '#sandbox.stopping.waiting',
            actions: ['learn', 'dropRecord', 'died'],
          },
          { target: 'deciding', actions: 'learn' },
        ],
        DEADLINE: { guard: 'due', target: 'verifying', reenter: true },
      },
    },
    deciding: {
      always: [
        { guard: 'ending', target: '#sandbox.stopping' },
        { guard: 'claimed', target: '#sandbox.running', actions: 'beginRunning' },
        { guard: 'gone', target: '#sandbox.stopping', actions: 'died' },
        { guard: 'requestOver', target: '#sandbox.stopping', actions: 'noteEnd' },
        { guard: 'repeated', target: 'retrying' },
        { target: 'writing', actions: 'awaitRequest' },
      ],
    },
    /**
     * Still idle: repeats the same conditional write, the second time after a pause. It succeeds
     * once or never.
     */
    retrying: {
      description: 'a claim has not landed; it is written once more',
      entry: 'awaitRepeat',
      on: {
        FACT: { target: 'deciding', actions: 'learn' },
        DEADLINE: [
          { guard: 'requestOver', target: '#sandbox.stopping', actions: 'noteEnd' },
          { guard: 'due', target: 'writing', actions: 'awaitRequest' },
        ],
      },
    },
  },
});

/**
 * One instance, from launch to end: starting → idle (available, unavailable) → claiming → running →
 * stopping → completed.
 *
 * Claimed at most once: CLAIM is legal only in `idle.available`. Only CLAIMED (the driver confirms
 * the durable write) or a fact leads to `running`. Only END, its own expiry, or a fact that it is
 * gone lead out of `running`. END is legal in every state and never lost. A claim or retirement
 * with an unknown outcome is read uncached. After its request's deadline, the conditional
 * retirement settles a claim, so that the claim cannot succeed later.
 *
 * Every replica has this actor. A replica carries out its own requests. Everything else is the
 * leader's task: others get NOT_LEADING and wait for facts.
 */
export const sandboxMachine = sandboxSetup.createMachine({
  id: 'sandbox',
  context: ({ input }) =>
    'launchOrder' in input
      ? ordered(input.launchOrder, input.now)
      : restored(input.fact, input.now),
  initial: 'restoring',
  // Ignores late and repeated answers that no state expects, but always learns facts.
  on: { FACT: { actions: 'learn' }, WORK_ENDED: { actions: 'endWork' } },
  states: {
    restoring: {
      always: [
        { guard: 'born', target: 'starting.ordered' },
        { guard: 'endNoted', target: 'stopping' },
        { guard: 'claimed', target: 'running' },
        { guard: 'gone', target: 'stopping', actions: 'died' },
        { guard: 'available', target: 'idle.available' },
        { guard: 'started', target: 'idle.unavailable' },
        { target: 'starting.booting' },
      ],
    },
    starting,
    /**
     * A start counts once the instance has lived for a while, or is claimed. If the instance dies
     * earlier, the start has failed.
     */
    idle: {
      initial: 'available',
      tags: ['endNotDurable'],
      entry: 'awaitSteady',
      always: [
        { guard: 'claimed', target: 'running', actions: 'beginRunning' },
        { guard: 'diedYoung', target: 'stopping', actions: ['died', 'reportFailed'] },
        { guard: 'gone', target: 'stopping', actions: 'died' },
        { guard: 'brokeYoung', target: 'stopping', actions: ['broke', 'reportFailed'] },
        { guard: 'broken', target: 'stopping', actions: 'broke' },
      ],
      on: {
        RETIRE: { target: 'stopping', actions: 'noteEnd' },
        END: { target: 'stopping', actions: 'noteEnd' },
        DEADLINE: [
          { guard: 'dueUnclaimed', target: 'stopping', actions: 'noteEnd' },
          { guard: 'due', actions: ['reportStarted', 'awaitNothing'] },
        ],
        FACT: [
          // Without a record it is dead, never free.
          {
            guard: 'recordGone',
            target: 'stopping.waiting',
            actions: ['learn', 'dropRecord', 'died'],
          },
          { actions: 'learn' },
        ],
      },
      states: {
        available: {
          description: 'it is ready, and nobody has claimed it',
          always: { guard: 'unavailable', target: 'unavailable' },
          on: {
            CLAIM: [
              {
                guard: 'unsteady',
                target: '#sandbox.claiming.writing',
                actions: ['reportStarted', 'beginClaim'],
              },
              { target: '#sandbox.claiming.writing', actions: 'beginClaim' },
            ],
          },
        },
        unavailable: {
          tags: ['notReady'],
          description: 'it was ready before, and is not claimable now',
          always: { guard: 'available', target: 'available' },
        },
      },
    },
    claiming,
    running: {
      description: 'it is claimed; it ends when its owner or a timeout says so, or when it dies',
      entry: 'awaitExpiry',
      always: [
        { guard: 'gone', target: 'stopping.releasing', actions: 'died' },
        { guard: 'endNoted', target: 'stopping.releasing' },
      ],
      on: {
        FACT: [
          // Its record was deleted by hand.
          { guard: 'recordGone', target: 'stopping.releasing', actions: ['learn', 'noteEnd'] },
          { actions: ['learn', 'awaitExpiry'] },
        ],
        ACTIVE: { actions: ['markActive', 'awaitExpiry'] },
        WORK_BEGAN: { actions: ['beginWork', 'awaitExpiry'] },
        WORK_ENDED: { actions: ['endWork', 'awaitExpiry'] },
        AMENDED: { actions: ['keepRecord', 'markActive', 'awaitExpiry'] },
        END: { target: 'stopping.releasing', actions: 'noteEnd' },
        DEADLINE: [
          { guard: 'expired', actions: ['awaitRetry', 'confirmExpiry'] },
          { actions: 'awaitExpiry' },
        ],
        EXPIRED: [
          { guard: 'expired', target: 'stopping.releasing', actions: 'noteEnd' },
          { actions: 'awaitExpiry' },
        ],
        STILL_ACTIVE: { actions: ['markActiveThen', 'awaitExpiry'] },
        NOT_LEADING: { guard: 'expired', actions: 'awaitLeader' },
      },
    },
    stopping,
    completed: { tags: ['endDurable'], type: 'final', entry: 'awaitNothing' },
  },
});

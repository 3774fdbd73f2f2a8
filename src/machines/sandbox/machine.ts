import { ordered, restored } from './arithmetic.ts';
import { sandboxSetup } from './setup.ts';
import { starting } from './starting.ts';
import { stopping } from './stopping.ts';

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
      description: 'a claim is being written',
      entry: 'claim',
      on: {
        // Once another claim won, ours cannot succeed.
        FACT: [
          { guard: 'shownClaimed', target: 'deciding', actions: 'learn' },
          { actions: 'learn' },
        ],
        CLAIM_OUTCOME_UNKNOWN: { target: 'verifying' },
        DEADLINE: { guard: 'due', target: 'verifying' },
      },
    },
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
    /** Repeats the conditional write, which succeeds once or never. */
    retrying: {
      description: 'a claim was not written; it is written again',
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
 * One instance, from launch to end. Claimed at most once: CLAIM is legal only in `idle.available`,
 * and only CLAIMED (after the durable write) or a fact leads to `running`. Only END, its own
 * expiry, or a fact that it is gone lead out of `running`. END is legal in every state and never
 * lost. After a claim's deadline, the conditional retirement settles it, so that it cannot succeed
 * later. Every replica has this actor and carries out its own requests; all else is the leader's,
 * and others get NOT_LEADING.
 */
export const sandboxMachine = sandboxSetup.createMachine({
  id: 'sandbox',
  context: ({ input }) =>
    'launchOrder' in input
      ? ordered(input.launchOrder, input.now)
      : restored(input.fact, input.now),
  initial: 'restoring',
  // Late and repeated answers are ignored, but facts always count.
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
    /** The start counts once the instance has lived for a while, or is claimed. */
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
          description: 'it is ready and unclaimed',
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
          description: 'it was ready before, and cannot be claimed now',
          always: { guard: 'available', target: 'available' },
        },
      },
    },
    claiming,
    running: {
      description: 'it is claimed, until its owner deletes it, a timeout ends it, or it dies',
      entry: 'awaitExpiry',
      always: [
        { guard: 'gone', target: 'stopping.releasing', actions: 'died' },
        { guard: 'endNoted', target: 'stopping.releasing' },
      ],
      on: {
        FACT: [
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

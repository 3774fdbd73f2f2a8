import { ordered, restored } from './arithmetic.ts';
import { sandboxSetup } from './setup.ts';
import { starting } from './starting.ts';
import { stopping } from './stopping.ts';

/** A claim is under way: its write landed, or it did not, or that is being found out. */
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
        // Ours, or somebody else's: then ours can't land any more.
        FACT: [
          { guard: 'shownClaimed', target: 'deciding', actions: 'learn' },
          { actions: 'learn' },
        ],
        CLAIM_OUTCOME_UNKNOWN: { target: 'verifying' },
        DEADLINE: { guard: 'due', target: 'verifying' },
      },
    },
    /** The write failed, or its outcome is unknown: the record tells. */
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
     * Still idle: the same conditional write is repeated, the second time after a pause, and
     * lands once or not at all.
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
 * Claimed at most once: CLAIM is legal in `idle.available` alone, and `running` is entered only by
 * CLAIMED, the driver's word that the durable write went through, or by a fact that shows it.
 * Running is left only by END, by its own expiry, or by a fact that it is gone. END is legal in
 * every state, and never forgotten. A claim or retirement of unknown outcome is looked at uncached;
 * past its request's deadline a claim is settled by the conditional retirement, so that it can't
 * land later.
 *
 * Every replica has this actor. What a request of the replica asks for it carries out itself; all
 * else is the leader's, and NOT_LEADING says so: then it waits for the facts that show what the
 * leader did.
 */
export const sandboxMachine = sandboxSetup.createMachine({
  id: 'sandbox',
  context: ({ input }) =>
    'launchOrder' in input
      ? ordered(input.launchOrder, input.now)
      : restored(input.fact, input.now),
  initial: 'restoring',
  // A late or repeated answer that no state asks for changes nothing; what is observed is always
  // learned.
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
     * Its start counts as such once it has lived for a while, or is claimed; one that dies before
     * has failed to start.
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
          // No record means dead, never free.
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
          // Somebody deleted its record by hand.
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

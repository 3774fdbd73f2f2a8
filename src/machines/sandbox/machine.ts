import { ordered, restored } from './knowledge.ts';
import { sandboxSetup } from './setup.ts';

/** What runs was launched, whatever became of the answer. */
const SEEN_BORN = [
  {
    guard: 'shownAvailable',
    target: '#sandbox.starting.booting',
    actions: ['learn', 'dropLaunchOrder'],
  },
  { actions: 'learn' },
] as const;

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
  initial: 'arriving',
  // A late or repeated answer that no state asks for changes nothing; what is observed is always
  // learned.
  on: { FACT: { actions: 'learn' }, WORK_ENDED: { actions: 'endWork' } },
  states: {
    arriving: {
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
    starting: {
      initial: 'booting',
      states: {
        /**
         * The birth is ordered and may or may not have landed; repeated under the same id until it
         * is known.
         */
        ordered: {
          initial: 'launching',
          states: {
            launching: {
              entry: ['awaitLaunch', 'launch'],
              on: {
                LAUNCH_UNKNOWN: { target: 'uncertain' },
                DEADLINE: { guard: 'due', target: 'uncertain' },
                NOT_LEADING: { target: 'abandoned' },
                FACT: SEEN_BORN,
              },
            },
            uncertain: {
              entry: 'awaitRetry',
              on: { DEADLINE: { guard: 'due', target: 'launching' }, FACT: SEEN_BORN },
            },
            /**
             * Another replica leads now, and launches what is missing: it is gone on with only if
             * it landed.
             */
            abandoned: {
              entry: ['awaitRetry', 'look'],
              on: {
                FACT: [
                  { guard: 'neverBorn', target: '#sandbox.completed', actions: 'learn' },
                  {
                    guard: 'recordGone',
                    target: '#sandbox.stopping.waiting',
                    actions: ['learn', 'dropRecord'],
                  },
                  { target: '#sandbox.starting.booting', actions: ['learn', 'dropLaunchOrder'] },
                ],
                DEADLINE: { guard: 'due', target: 'abandoned', reenter: true },
              },
            },
            /** An earlier attempt may have landed: the record tells. */
            refused: {
              entry: ['awaitRetry', 'look'],
              on: {
                FACT: [
                  { guard: 'neverBorn', target: '#sandbox.completed', actions: 'learn' },
                  {
                    guard: 'recordGone',
                    target: '#sandbox.stopping.waiting',
                    actions: ['learn', 'dropRecord'],
                  },
                  { target: '#sandbox.stopping', actions: 'learn' },
                ],
                DEADLINE: { guard: 'due', target: 'refused', reenter: true },
              },
            },
          },
          on: {
            LAUNCHED: { target: 'booting', actions: ['keepRecord', 'noteLaunched'] },
            LAUNCH_REFUSED: { target: '.refused', actions: ['startFailed', 'reportFailed'] },
            LAUNCH_DEFERRED: { target: '.refused', actions: ['noteEnd', 'reportDeferred'] },
            RETIRE: { actions: 'noteEnd' },
            END: { actions: 'noteEnd' },
            FACT: { actions: 'learn' },
          },
        },
        booting: {
          entry: 'awaitStart',
          always: [
            { guard: 'ending', target: '#sandbox.stopping' },
            { guard: 'claimed', target: '#sandbox.running', actions: 'beginRunning' },
            {
              guard: 'gone',
              target: '#sandbox.stopping',
              actions: ['startFailed', 'reportFailed'],
            },
            {
              guard: 'broken',
              target: '#sandbox.stopping',
              actions: ['startFailed', 'reportFailed'],
            },
            { guard: 'available', target: '#sandbox.idle.available' },
          ],
          on: {
            FACT: [
              {
                guard: 'recordGone',
                target: '#sandbox.stopping.waiting',
                actions: ['learn', 'dropRecord', 'died'],
              },
              { actions: 'learn' },
            ],
            // Whoever wrote its record does not launch it any more, which is no failed start.
            LEADING: { guard: 'unlaunched', target: '#sandbox.stopping', actions: 'noteEnd' },
            DEADLINE: [
              { guard: 'dueUnlaunched', target: '#sandbox.stopping', actions: 'noteEnd' },
              {
                guard: 'due',
                target: '#sandbox.stopping',
                actions: ['startTimedOut', 'reportFailed'],
              },
            ],
            RETIRE: { target: '#sandbox.stopping', actions: 'noteEnd' },
            END: { target: '#sandbox.stopping', actions: 'noteEnd' },
          },
        },
      },
    },
    /**
     * Its start counts as such once it has lived for a while, or is claimed; one that dies before
     * has failed to start.
     */
    idle: {
      initial: 'available',
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
        DEADLINE: { guard: 'due', actions: ['reportStarted', 'awaitNothing'] },
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
        unavailable: { always: { guard: 'available', target: 'available' } },
      },
    },
    claiming: {
      initial: 'writing',
      on: {
        CLAIMED: [
          { guard: 'ending', target: 'stopping', actions: 'keepRecord' },
          { target: 'running', actions: ['keepRecord', 'beginRunning'] },
        ],
        END: { actions: 'noteEnd' },
      },
      states: {
        writing: {
          entry: 'claim',
          on: {
            // Ours, or somebody else's: then ours can't land any more.
            FACT: [
              { guard: 'shownClaimed', target: 'judging', actions: 'learn' },
              { actions: 'learn' },
            ],
            CLAIM_OUTCOME_UNKNOWN: { target: 'looking' },
            DEADLINE: { guard: 'due', target: 'looking' },
          },
        },
        /** The write failed, or its outcome is unknown: the record tells. */
        looking: {
          entry: ['awaitRetry', 'look'],
          on: {
            FACT: [
              {
                guard: 'recordGone',
                target: '#sandbox.stopping.waiting',
                actions: ['learn', 'dropRecord', 'died'],
              },
              { target: 'judging', actions: 'learn' },
            ],
            DEADLINE: { guard: 'due', target: 'looking', reenter: true },
          },
        },
        judging: {
          always: [
            { guard: 'ending', target: '#sandbox.stopping' },
            { guard: 'claimed', target: '#sandbox.running', actions: 'beginRunning' },
            { guard: 'gone', target: '#sandbox.stopping', actions: 'died' },
            { guard: 'requestOver', target: '#sandbox.stopping', actions: 'noteEnd' },
            { guard: 'repeated', target: 'unwritten' },
            { target: 'writing', actions: 'awaitRequest' },
          ],
        },
        /**
         * Still idle: the same conditional write is repeated, the second time after a pause, and
         * lands once or not at all.
         */
        unwritten: {
          entry: 'awaitRepeat',
          on: {
            FACT: { target: 'judging', actions: 'learn' },
            DEADLINE: [
              { guard: 'requestOver', target: '#sandbox.stopping', actions: 'noteEnd' },
              { guard: 'due', target: 'writing', actions: 'awaitRequest' },
            ],
          },
        },
      },
    },
    running: {
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
    stopping: {
      initial: 'judging',
      on: { END: { actions: 'noteEnd' } },
      states: {
        /** What somebody claimed meanwhile runs on, unless it was told to end. */
        judging: {
          always: [
            { guard: 'unclaimed', target: 'retiring' },
            {
              guard: 'mayRunOn',
              target: '#sandbox.running',
              actions: ['beginRunning', 'forgetEnd'],
            },
            { target: 'releasing' },
          ],
        },
        /** Unclaimed: its record is deleted if nobody claimed it meanwhile. */
        retiring: {
          entry: ['awaitRetry', 'retire'],
          on: {
            RETIRED: { target: 'waiting', actions: 'dropRecord' },
            RETIRE_OUTCOME_UNKNOWN: { target: 'looking' },
            // Nobody else knows that it was to be retired: who leads now decides anew.
            NOT_LEADING: [
              { guard: 'asked', target: 'judging' },
              { guard: 'unfit', target: 'left' },
              { guard: 'available', target: '#sandbox.idle.available', actions: 'forgetEnd' },
              { target: '#sandbox.idle.unavailable', actions: 'forgetEnd' },
            ],
            DEADLINE: { guard: 'due', target: 'looking' },
            CLAIMED: { target: 'judging', actions: 'keepRecord' },
          },
        },
        looking: {
          entry: ['awaitRetry', 'look'],
          on: {
            FACT: [
              { guard: 'recordGone', target: 'waiting', actions: ['learn', 'dropRecord'] },
              { guard: 'shownUnclaimed', target: 'unretired', actions: 'learn' },
              { target: 'judging', actions: 'learn' },
            ],
            DEADLINE: { guard: 'due', target: 'looking', reenter: true },
          },
        },
        /**
         * What lives, and was only not needed, is as if nothing were: whoever decided that decides
         * anew.
         */
        unretired: {
          entry: 'awaitRetry',
          on: {
            FACT: [
              { guard: 'recordGone', target: 'waiting', actions: ['learn', 'dropRecord'] },
              { guard: 'shownClaimed', target: 'judging', actions: 'learn' },
              { actions: 'learn' },
            ],
            CLAIMED: { target: 'judging', actions: 'keepRecord' },
            DEADLINE: [
              { guard: 'dueSpared', target: '#sandbox.arriving', actions: 'spare' },
              { guard: 'due', target: 'judging' },
            ],
          },
        },
        /** Claimed: the end is noted durably first, and holds whatever fails after it. */
        releasing: {
          entry: ['awaitRetry', 'release'],
          on: {
            RELEASED: { target: 'waiting' },
            RELEASE_OUTCOME_UNKNOWN: { target: 'unnoted' },
            NOT_LEADING: [{ guard: 'asked', target: 'judging' }, { target: 'left' }],
            DEADLINE: { guard: 'due', target: 'releasing', reenter: true },
            FACT: { actions: 'learn' },
          },
        },
        unnoted: {
          entry: 'awaitRetry',
          on: { DEADLINE: { guard: 'due', target: 'releasing' }, RELEASED: { target: 'waiting' } },
        },
        /**
         * Until nothing of it runs any more, which comes as a fact; who leads looks only where none
         * comes in time.
         */
        waiting: {
          entry: 'awaitGone',
          always: { guard: 'goneEntirely', target: 'closing' },
          on: {
            FACT: { actions: ['learn', 'awaitGone'] },
            DEADLINE: { guard: 'due', actions: ['lookPatiently', 'awaitGone'] },
            NOT_LEADING: { actions: 'awaitGone' },
          },
        },
        /** The leader's to carry out: what it did comes as a fact. */
        left: {
          entry: 'awaitLeader',
          always: { guard: 'forgottenAndGone', target: '#sandbox.completed' },
          on: {
            END: { target: 'judging', actions: 'noteEnd' },
            FACT: [
              { guard: 'recordGone', actions: 'learn' },
              { target: 'judging', actions: 'learn' },
            ],
            DEADLINE: { guard: 'due', target: 'judging' },
          },
        },
        closing: {
          entry: ['awaitRetry', 'close'],
          on: {
            CLOSED: { target: '#sandbox.completed' },
            CLOSE_OUTCOME_UNKNOWN: { target: 'unclosed' },
            NOT_LEADING: { target: 'left' },
            DEADLINE: { guard: 'due', target: 'closing', reenter: true },
          },
        },
        unclosed: {
          entry: 'awaitRetry',
          on: {
            DEADLINE: { guard: 'due', target: 'closing' },
            CLOSED: { target: '#sandbox.completed' },
          },
        },
      },
    },
    completed: { type: 'final', entry: 'awaitNothing' },
  },
});

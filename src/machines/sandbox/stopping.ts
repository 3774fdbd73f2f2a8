import { sandboxSetup } from './setup.ts';

export const stopping = sandboxSetup.createStateConfig({
  initial: 'deciding',
  on: { END: { actions: 'noteEnd' } },
  states: {
    /** A sandbox claimed in the meantime runs on, unless a request ends it. */
    deciding: {
      tags: ['endUnderWay'],
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
    retiring: {
      description: 'it is not needed; its record is being deleted, unless it is claimed first',
      tags: ['endUnderWay', 'endNotDurable'],
      entry: ['awaitRetry', 'retire'],
      on: {
        RETIRED: { target: 'waiting', actions: 'dropRecord' },
        RETIRE_OUTCOME_UNKNOWN: { target: 'verifying' },
        // Only this replica saw the retirement, so the current leader decides again.
        NOT_LEADING: [
          { guard: 'asked', target: 'deciding' },
          { guard: 'unfit', target: 'awaitingLeader' },
          { guard: 'available', target: '#sandbox.idle.available', actions: 'forgetEnd' },
          { target: '#sandbox.idle.unavailable', actions: 'forgetEnd' },
        ],
        DEADLINE: { guard: 'due', target: 'verifying' },
        CLAIMED: { target: 'deciding', actions: 'keepRecord' },
      },
    },
    verifying: {
      description: 'its record may have been deleted; it is being read',
      tags: ['endFailed', 'endNotDurable'],
      entry: ['awaitRetry', 'look'],
      on: {
        FACT: [
          { guard: 'recordGone', target: 'waiting', actions: ['learn', 'dropRecord'] },
          { guard: 'shownUnclaimed', target: 'retireFailed', actions: 'learn' },
          { target: 'deciding', actions: 'learn' },
        ],
        DEADLINE: { guard: 'due', target: 'verifying', reenter: true },
      },
    },
    retireFailed: {
      description: 'its record could not be deleted; trying again',
      tags: ['endFailed', 'endNotDurable'],
      entry: 'awaitRetry',
      on: {
        FACT: [
          { guard: 'recordGone', target: 'waiting', actions: ['learn', 'dropRecord'] },
          { guard: 'shownClaimed', target: 'deciding', actions: 'learn' },
          { actions: 'learn' },
        ],
        CLAIMED: { target: 'deciding', actions: 'keepRecord' },
        DEADLINE: [
          { guard: 'dueSpared', target: '#sandbox.restoring', actions: 'spare' },
          { guard: 'due', target: 'deciding' },
        ],
      },
    },
    /** Saves the end first; later failures cannot undo it. */
    releasing: {
      description: 'its end is being written',
      tags: ['endUnderWay', 'endNotDurable'],
      entry: ['awaitRetry', 'release'],
      on: {
        RELEASED: { target: 'waiting' },
        RELEASE_OUTCOME_UNKNOWN: { target: 'releaseFailed' },
        NOT_LEADING: [{ guard: 'asked', target: 'deciding' }, { target: 'awaitingLeader' }],
        DEADLINE: { guard: 'due', target: 'releasing', reenter: true },
        FACT: { actions: 'learn' },
      },
    },
    releaseFailed: {
      description: 'its end could not be written; trying again',
      tags: ['endFailed', 'endNotDurable'],
      entry: 'awaitRetry',
      on: { DEADLINE: { guard: 'due', target: 'releasing' }, RELEASED: { target: 'waiting' } },
    },
    /** The leader checks only if no fact comes in time. */
    waiting: {
      description: 'its end is durable; its processes must end before it is closed',
      tags: ['endDurable'],
      entry: 'awaitGone',
      always: { guard: 'goneEntirely', target: 'closing' },
      on: {
        FACT: { actions: ['learn', 'awaitGone'] },
        DEADLINE: { guard: 'due', actions: ['lookPatiently', 'awaitGone'] },
        NOT_LEADING: { actions: 'awaitGone' },
      },
    },
    awaitingLeader: {
      description: 'the leader does the rest; its results arrive as facts',
      entry: 'awaitLeader',
      always: { guard: 'forgottenAndGone', target: '#sandbox.completed' },
      on: {
        END: { target: 'deciding', actions: 'noteEnd' },
        FACT: [
          { guard: 'recordGone', actions: 'learn' },
          { target: 'deciding', actions: 'learn' },
        ],
        DEADLINE: { guard: 'due', target: 'deciding' },
      },
    },
    closing: {
      description: 'its history, quota and record are being closed',
      tags: ['endDurable'],
      entry: ['awaitRetry', 'close'],
      on: {
        CLOSED: { target: '#sandbox.completed' },
        CLOSE_OUTCOME_UNKNOWN: { target: 'closeFailed' },
        NOT_LEADING: { target: 'awaitingLeader' },
        DEADLINE: { guard: 'due', target: 'closing', reenter: true },
      },
    },
    closeFailed: {
      description: 'its history, quota and record could not be closed; trying again',
      tags: ['endDurable'],
      entry: 'awaitRetry',
      on: {
        DEADLINE: { guard: 'due', target: 'closing' },
        CLOSED: { target: '#sandbox.completed' },
      },
    },
  },
});

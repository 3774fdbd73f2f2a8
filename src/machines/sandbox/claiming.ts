import { sandboxSetup } from './setup.ts';

/** A claim is under way: its write landed, or it did not, or that is being found out. */
export const claiming = sandboxSetup.createStateConfig({
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

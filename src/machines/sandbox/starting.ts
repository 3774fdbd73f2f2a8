import { sandboxSetup } from './setup.ts';

const SEEN_BORN = [
  {
    guard: 'shownAvailable',
    target: '#sandbox.starting.booting',
    actions: ['learn', 'dropLaunchOrder'],
  },
  { actions: 'learn' },
] as const;

export const starting = sandboxSetup.createStateConfig({
  initial: 'booting',
  states: {
    /** Repeated under the same id. */
    ordered: {
      initial: 'launching',
      states: {
        launching: {
          description: 'its launch was requested, and is not answered yet',
          entry: ['awaitLaunch', 'launch'],
          on: {
            LAUNCH_UNKNOWN: { target: 'uncertain' },
            DEADLINE: { guard: 'due', target: 'uncertain' },
            NOT_LEADING: { target: 'abandoned' },
            FACT: SEEN_BORN,
          },
        },
        uncertain: {
          description:
            'the outcome of its launch is unknown; the launch is repeated with the same id',
          entry: 'awaitRetry',
          on: { DEADLINE: { guard: 'due', target: 'launching' }, FACT: SEEN_BORN },
        },
        /** Another replica leads: continue only if the launch took effect. */
        abandoned: {
          description:
            'another replica leads its pool now; it continues only if its launch succeeded',
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
        /** An earlier attempt may have succeeded; the record decides. */
        refused: {
          description:
            'its launch was refused; its record shows whether an earlier attempt succeeded',
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
      tags: ['awaited', 'notReady'],
      description: 'it was launched, and is not ready yet',
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
        // The writer of its record does not launch it any more, which is not a failed start.
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
});

import type { Log } from '../../contracts/log.ts';

/** Addresses of the daemon, its metrics and its compatible API, if served. */
export interface Started {
  readonly address: string;
  readonly metricsAddress?: string;
  readonly compatibleAddress?: string;
  readonly firstStart: boolean;
  /** Link that logs one browser in to the console, once and soon. */
  readonly consoleLink?: string;
}

/** Interface of a composed daemon for its process. */
export interface RunnableDaemon {
  start(): Promise<Started>;
  /** Returns the number of sandboxes that keep running. */
  stop(): Promise<{ readonly sandboxesLeft: number }>;
  /** Resolves with the cause when the daemon has failed. */
  readonly failed: Promise<Error>;
}

/** Signals of a process: `process`, or a test's fake. */
export interface Signals {
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: 'SIGINT' | 'SIGTERM', listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface ProcessDeps {
  readonly log: Log;
  readonly signals: Signals;
  /** A signal received before the listeners were added. */
  readonly signalled?: () => NodeJS.Signals | undefined;
  /** Ends the process immediately. */
  readonly exit: (code: number) => void;
  /** Calls `due` after `ms`; returns a function that cancels it. */
  readonly after: (ms: number, due: () => void) => () => void;
  /** Configured delay before the stop, in ms. The stop's deadline starts after the delay. */
  readonly shutdownDelayMs: number;
  readonly onReady: (started: Started) => void;
  readonly onStopped: (stopped: { readonly sandboxesLeft: number }) => void;
}

/** Deadline of an orderly stop after the delay, in ms. */
export const STOP_DEADLINE_MS = 10_000;
/** Time for a start in progress to end after the signal, in ms. */
export const START_GRACE_MS = 2_000;

/**
 * Runs the daemon; resolves with the process's exit code: 0 after SIGINT or SIGTERM, 1 after a
 * failure. The first signal stops the daemon in order, even during the start. A second signal or
 * the deadline ends the process at once. If the start fails, stops all opened parts and rejects.
 */
export const runDaemon = async (daemon: RunnableDaemon, deps: ProcessDeps): Promise<number> => {
  const { log, signals } = deps;
  let signalled: NodeJS.Signals | undefined;
  let askToStop: (() => void) | undefined;
  let disarm = (): void => {};
  const asked = new Promise<void>((resolve) => {
    askToStop = resolve;
  });
  const armDeadline = (): void => {
    disarm();
    const deadlineMs = STOP_DEADLINE_MS + deps.shutdownDelayMs;
    disarm = deps.after(deadlineMs, () => {
      log.error({ deadlineMs }, 'stop-took-too-long');
      deps.exit(1);
    });
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) {
      log.warn({ signal }, 'stopped-at-once');
      deps.exit(signal === 'SIGINT' ? 130 : 143);
      return;
    }
    signalled = signal;
    log.info({ signal }, 'stop-requested');
    armDeadline();
    askToStop?.();
  };

  signals.on('SIGINT', onSignal);
  signals.on('SIGTERM', onSignal);
  const before = deps.signalled?.();
  if (before) onSignal(before);
  try {
    const failure = await startAndWait(daemon, deps, { asked, armDeadline });
    if (failure) {
      log.error({ error: failure }, 'daemon-failed');
      armDeadline();
    }
    deps.onStopped(await daemon.stop());
    return failure ? 1 : 0;
  } finally {
    disarm();
    signals.off('SIGINT', onSignal);
    signals.off('SIGTERM', onSignal);
  }
};

/** Resolves when the daemon must stop: with its failure, or with undefined after a signal. */
const startAndWait = async (
  daemon: RunnableDaemon,
  deps: ProcessDeps,
  { asked, armDeadline }: { readonly asked: Promise<void>; readonly armDeadline: () => void },
): Promise<Error | undefined> => {
  try {
    if (deps.signalled?.()) return undefined;
    const started = await unlessGivenUp(daemon.start(), asked, deps);
    if (!started) return undefined;
    deps.log.info({ address: started.address, firstStart: started.firstStart }, 'daemon-started');
    deps.onReady(started);
  } catch (cause) {
    armDeadline();
    await daemon.stop().catch((error: unknown) => {
      deps.log.warn({ error }, 'stop-after-failed-start-failed');
    });
    throw cause;
  }
  return Promise.race([asked.then(() => undefined), daemon.failed]);
};

/**
 * Abandons a start that still waits for others some time after the signal; resolves with undefined.
 */
const unlessGivenUp = async <T>(
  starting: Promise<T>,
  asked: Promise<void>,
  { after }: ProcessDeps,
): Promise<T | undefined> => {
  let isOver = false;
  let cancel = (): void => undefined;
  const givenUp = asked.then(
    () =>
      new Promise<undefined>((resolve) => {
        if (!isOver)
          cancel = after(START_GRACE_MS, () => {
            resolve(undefined);
          });
      }),
  );
  try {
    return await Promise.race([starting, givenUp]);
  } finally {
    isOver = true;
    cancel();
  }
};

import type { Log } from '../../contracts/log.ts';

/** The daemon's address, and those of its metrics and its compatible API where they are served. */
export interface Started {
  readonly address: string;
  readonly metricsAddress?: string;
  readonly compatibleAddress?: string;
  readonly firstStart: boolean;
  /** Logs one browser in to the console, once and soon. */
  readonly consoleLink?: string;
}

/** A composed daemon, as its process sees it. */
export interface RunnableDaemon {
  start(): Promise<Started>;
  /** Returns how many sandboxes go on running. */
  stop(): Promise<{ readonly sandboxesLeft: number }>;
  /** Settles when the daemon can't go on, with the cause. */
  readonly failed: Promise<Error>;
}

/** The signals of a process: `process` itself, or a test's stand-in. */
export interface Signals {
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: 'SIGINT' | 'SIGTERM', listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface ProcessDeps {
  readonly log: Log;
  readonly signals: Signals;
  /** The signal that came before this listened, if one did. */
  readonly signalled?: () => NodeJS.Signals | undefined;
  /** Ends the process at once. */
  readonly exit: (code: number) => void;
  /** Calls back after so many ms; returns the way to call it off. */
  readonly after: (ms: number, due: () => void) => () => void;
  /**
   * Milliseconds that the daemon waits by its settings before it stops; the deadline comes after
   * them.
   */
  readonly shutdownDelayMs: number;
  readonly onReady: (started: Started) => void;
  readonly onStopped: (stopped: { readonly sandboxesLeft: number }) => void;
}

/** Milliseconds that an orderly stop may take after the delay. */
export const STOP_DEADLINE_MS = 10_000;
/** Milliseconds that a start under way at the signal is given to end by itself. */
export const START_GRACE_MS = 2_000;

/**
 * Starts the daemon and resolves with the process's exit code once it has stopped: 0 after SIGINT
 * or SIGTERM, 1 after a failure of its own. The first signal stops it in order, also while it
 * starts; a second one, or the deadline, ends the process at once. Rejects where it can't start;
 * what it opened is stopped by then.
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
      log.error({ deadlineMs }, 'stop took too long');
      deps.exit(1);
    });
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) {
      log.warn({ signal }, 'stopped immediately');
      deps.exit(signal === 'SIGINT' ? 130 : 143);
      return;
    }
    signalled = signal;
    log.info({ signal }, 'stop requested');
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
      log.error({ error: failure }, 'daemon failed');
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

/**
 * Resolves when it is time to stop: with the daemon's failure, or without one when it was asked.
 */
const startAndWait = async (
  daemon: RunnableDaemon,
  deps: ProcessDeps,
  { asked, armDeadline }: { readonly asked: Promise<void>; readonly armDeadline: () => void },
): Promise<Error | undefined> => {
  try {
    if (deps.signalled?.()) return undefined;
    const started = await unlessGivenUp(daemon.start(), asked, deps);
    if (!started) return undefined;
    deps.log.info({ address: started.address, firstStart: started.firstStart }, 'daemon started');
    deps.onReady(started);
  } catch (cause) {
    armDeadline();
    await daemon.stop().catch((error: unknown) => {
      deps.log.warn({ error }, 'cleanup after a failed start failed too');
    });
    throw cause;
  }
  return Promise.race([asked.then(() => undefined), daemon.failed]);
};

/**
 * A start may wait for others, for as long as it takes: some time after the signal it is given up,
 * and answers nothing.
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

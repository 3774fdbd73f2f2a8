import type { Log } from '../../contracts/log.ts';

export interface Started {
  readonly address: string;
  readonly metricsAddress?: string;
  readonly compatibleAddress?: string;
  readonly firstStart: boolean;
  readonly consoleLink?: string;
}

export interface RunnableDaemon {
  start(): Promise<Started>;
  stop(): Promise<{ readonly sandboxesLeft: number }>;
  readonly failed: Promise<Error>;
}

export interface Signals {
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: 'SIGINT' | 'SIGTERM', listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface ProcessDeps {
  readonly log: Log;
  readonly signals: Signals;
  readonly signalled?: () => NodeJS.Signals | undefined;
  readonly exit: (code: number) => void;
  readonly after: (ms: number, due: () => void) => () => void;
  /** In ms; the stop's deadline starts after it. */
  readonly shutdownDelayMs: number;
  readonly onReady: (started: Started) => void;
  readonly onStopped: (stopped: { readonly sandboxesLeft: number }) => void;
}

export const STOP_DEADLINE_MS = 10_000;
/** A start in progress may end within this time. */
export const START_GRACE_MS = 2_000;

/**
 * Resolves with the exit code: 0 after SIGINT or SIGTERM, 1 after a failure. The first signal stops
 * in order, even during the start; a second one or the deadline ends the process at once. If the
 * start fails, stops all opened parts and rejects.
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

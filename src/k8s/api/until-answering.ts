import type { Log } from '../../contracts/log.ts';
import type { ApiClient } from './api-calls.ts';
import { ApiRefused } from './api-errors.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';

export interface UntilAnsweringDeps {
  readonly api: Pick<ApiClient, 'get'>;
  /** For the log: where the API server is. */
  readonly server: string;
  readonly log: Log;
  /** Told why nothing goes on, each time that is tried. */
  readonly waits: (problem: string) => void;
  /** Ends the waiting. */
  readonly stopped: AbortSignal;
  /** Milliseconds before the second attempt, doubled for each further one, and at most. */
  readonly pauses?: { readonly firstMs: number; readonly mostMs: number };
}

/** So that whoever begins to read the log while it waits learns why. */
const SAY_AGAIN_MS = 30_000;

/**
 * Resolves once the API server answers, however long that takes, and says in the log what it waits
 * for. Rejects where the API server refuses the daemon, which waiting does not mend, and with the
 * signal's reason.
 */
export const untilAnswering = async (deps: UntilAnsweringDeps): Promise<void> => {
  const { log, server, waits, stopped, pauses = { firstMs: 250, mostMs: 2_000 } } = deps;
  const began = performance.now();
  let saidAt = Number.NEGATIVE_INFINITY;
  for (let pauseMs = pauses.firstMs; ; pauseMs = Math.min(2 * pauseMs, pauses.mostMs)) {
    const error = await unlessAborted(stopped, problemOf(deps.api));
    const waitedMs = Math.round(performance.now() - began);
    if (error === undefined) {
      if (saidAt > Number.NEGATIVE_INFINITY)
        log.info({ server, waitedMs }, 'the API server answers');
      return;
    }
    const why = error instanceof Error ? error.message : 'no error said why';
    if (error instanceof ApiRefused && error.status < 500 && error.status !== 429) {
      throw new Error(`the API server at ${server} can't be used: ${why}`, { cause: error });
    }
    waits(`the start waits for the API server at ${server}: ${why}`);
    if (performance.now() - saidAt >= SAY_AGAIN_MS) {
      saidAt = performance.now();
      log.warn({ server, waitedMs, error }, 'waits for the API server');
    }
    await pause(pauseMs, stopped);
  }
};

const problemOf = async (api: Pick<ApiClient, 'get'>): Promise<unknown> => {
  try {
    // whoever may speak to it may ask for this, and its answer tells the time
    await api.get('/version');
    return undefined;
  } catch (error) {
    return error;
  }
};

const pause = async (ms: number, stopped: AbortSignal): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await unlessAborted(stopped, over).finally(() => clearTimeout(timer));
};

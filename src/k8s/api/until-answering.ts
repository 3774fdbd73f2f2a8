import type { Log } from '../../contracts/log.ts';
import type { ApiClient } from './api-calls.ts';
import { ApiRefused } from './api-errors.ts';
import { unlessAborted } from '../../lib/unless-aborted.ts';

export interface UntilAnsweringDeps {
  readonly api: Pick<ApiClient, 'get'>;
  readonly server: string;
  readonly log: Log;
  /** Receives the reason of each failed attempt. */
  readonly waits: (problem: string) => void;
  readonly stopped: AbortSignal;
  readonly pauses?: { readonly firstMs: number; readonly mostMs: number };
}

/** Somebody may start to read the log later. */
const SAY_AGAIN_MS = 30_000;

/**
 * Waits however long it takes. Rejects if the API server refuses the daemon, and with the signal's
 * reason.
 */
export const untilAnswering = async (deps: UntilAnsweringDeps): Promise<void> => {
  const { log, server, waits, stopped, pauses = { firstMs: 250, mostMs: 2_000 } } = deps;
  const began = performance.now();
  let saidAt = Number.NEGATIVE_INFINITY;
  for (let pauseMs = pauses.firstMs; ; pauseMs = Math.min(2 * pauseMs, pauses.mostMs)) {
    const error = await unlessAborted(stopped, problemOf(deps.api));
    const waitedMs = Math.round(performance.now() - began);
    if (error === undefined) {
      if (saidAt > Number.NEGATIVE_INFINITY) log.info({ server, waitedMs }, 'api-server-answers');
      return;
    }
    const why = error instanceof Error ? error.message : 'unknown error';
    if (error instanceof ApiRefused && error.status < 500 && error.status !== 429) {
      throw new Error(`the API server at ${server} can't be used: ${why}`, { cause: error });
    }
    waits(`the start waits for the API server at ${server}: ${why}`);
    if (performance.now() - saidAt >= SAY_AGAIN_MS) {
      saidAt = performance.now();
      log.warn({ server, waitedMs, error }, 'waiting-for-api-server');
    }
    await pause(pauseMs, stopped);
  }
};

const problemOf = async (api: Pick<ApiClient, 'get'>): Promise<unknown> => {
  try {
    // every authenticated user may read this, and the answer gives the time
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

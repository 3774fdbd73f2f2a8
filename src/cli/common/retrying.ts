import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, ConnectionFailed } from '../client/api-error.ts';
import { type CliContext, print } from './context.ts';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** About half a minute in total. */
export const MOST_TRIES = 10;

/** The service did not answer, or was too busy. */
export const mayPass = (error: unknown): error is ConnectionFailed | ApiError =>
  error instanceof ConnectionFailed ||
  (error instanceof ApiError && (error.status === 503 || error.status === 429));

export const pauseBefore = (tries: number): number =>
  Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);

/** Retries after a first success, with a notice. Throws if the service stays unreachable. */
export const lasting = <T>(
  { stderr }: Pick<CliContext, 'stderr'>,
  look: () => Promise<T>,
): (() => Promise<T>) => {
  let seen = false;
  return async () => {
    for (let tries = 0; ; tries += 1) {
      try {
        const found = await look();
        seen = true;
        return found;
      } catch (error) {
        if (!seen || !mayPass(error) || tries >= MOST_TRIES) throw error;
        if (tries === 0) await print(stderr, `sandpool: ${error.message}; retrying\n`);
        await pause(pauseBefore(tries));
      }
    }
  };
};

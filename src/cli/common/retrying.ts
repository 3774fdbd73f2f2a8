import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, ConnectionFailed } from '../client/api-error.ts';
import { type CliContext, print } from './context.ts';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** About half a minute without a word. */
export const MOST_TRIES = 10;

/** Whether asking again may help: nobody answered, or had the time. */
export const mayPass = (error: unknown): error is ConnectionFailed | ApiError =>
  error instanceof ConnectionFailed ||
  (error instanceof ApiError && (error.status === 503 || error.status === 429));

export const pauseBefore = (tries: number): number =>
  Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);

/**
 * A look that, once it has seen something, goes on where its connection breaks or the service is
 * away for a while, and says so. Throws what else goes wrong, and where the service stays away.
 */
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
        if (tries === 0) await print(stderr, `sandpool: ${error.message}; asking again\n`);
        await pause(pauseBefore(tries));
      }
    }
  };
};

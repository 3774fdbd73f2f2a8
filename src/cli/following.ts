import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, ConnectionFailed } from '../client/api-error.ts';

export interface Following<T> {
  /** Opens the stream after the event of that id, or from its beginning. */
  readonly open: (lastEventId: string | undefined) => AsyncIterable<T>;
  readonly signal: AbortSignal;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** About half a minute without a word. */
const MOST_TRIES = 10;

/**
 * A stream of events that goes on where it was when its connection breaks, or when the service ends it to be asked again.
 * Throws where the service says no, and where it stays away.
 */
export async function* followed<T extends object>({ open, signal }: Following<T>): AsyncGenerator<T, void, undefined> {
  let lastEventId: string | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      for await (const item of open(lastEventId)) {
        tries = 0;
        if ('id' in item && typeof item.id === 'string' && item.id !== '') lastEventId = item.id;
        yield item;
      }
    } catch (error) {
      signal.throwIfAborted();
      const mayPass = error instanceof ConnectionFailed || (error instanceof ApiError && (error.status === 503 || error.status === 429));
      if (!mayPass || tries >= MOST_TRIES) throw error;
    }
    await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries), undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

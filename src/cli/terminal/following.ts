import { setTimeout as pause } from 'node:timers/promises';
import { mayPass, MOST_TRIES, pauseBefore } from '../common/retrying.ts';

export interface Following<T> {
  /** From the event after that id, or the beginning. */
  readonly open: (lastEventId: string | undefined) => AsyncIterable<T> | Promise<AsyncIterable<T>>;
  readonly signal: AbortSignal;
}

/** Resumes after a broken connection. Throws if the service refuses or stays unreachable. */
export async function* followed<T extends object>({
  open,
  signal,
}: Following<T>): AsyncGenerator<T, void, undefined> {
  let lastEventId: string | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      for await (const item of await open(lastEventId)) {
        tries = 0;
        if ('id' in item && typeof item.id === 'string' && item.id !== '') lastEventId = item.id;
        yield item;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!mayPass(error) || tries >= MOST_TRIES) throw error;
    }
    await pause(pauseBefore(tries), undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** Yields `open` first, once the stream is open. */
export async function* openedFirst<T>(
  stream: Promise<AsyncIterable<T>>,
): AsyncGenerator<T | { readonly type: 'open' }, void, undefined> {
  const events = await stream;
  yield { type: 'open' };
  yield* events;
}

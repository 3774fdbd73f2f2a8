import type { Next } from 'koa';
import type { Log } from '../../contracts/log.ts';
import type { Context } from './context.ts';

/** Notes something of an answered request, which took so many milliseconds. */
export type Note = (context: Context, tookMs: number) => void;

/**
 * Has what is noted of a request noted once its answer is written: nobody waits for it. It is noted
 * in the same turn of the event loop, before anything else is read, so that whoever has the answer
 * finds it.
 */
export const notes =
  (log: Log, each: readonly Note[]) =>
  async (context: Context, next: Next): Promise<void> => {
    const began = performance.now();
    await next();
    const tookMs = performance.now() - began;
    // A tick that a microtask asks for comes once there are no more microtasks: Koa has answered.
    process.nextTick(() => {
      try {
        for (const note of each) note(context, tookMs);
      } catch (error) {
        log.error({ requestId: context.state.requestId, error }, 'a request could not be noted');
      }
    });
  };

import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';

export interface FlowTerms {
  readonly clock: Clock;
  readonly moved: () => void;
  /** The writer accepted nothing for `stallMs`. */
  readonly stalled: () => void;
  readonly stallMs: number;
}

/**
 * Copies chunks with backpressure. The caller handles the ends. Returns a function that stops the
 * copy; later chunks are dropped.
 */
export const flow = (
  from: Readable,
  to: Writable,
  { clock, moved, stalled, stallMs }: FlowTerms,
): (() => void) => {
  let callOff: (() => void) | undefined;
  const pass = (chunk: Buffer): void => {
    moved();
    if (to.write(chunk) || callOff) return;
    from.pause();
    callOff = clock.at(clock.now() + stallMs, stalled);
  };
  const goOn = (): void => {
    callOff?.();
    callOff = undefined;
    from.resume();
  };
  const stop = (): void => {
    callOff?.();
    from.off('data', pass);
    to.off('drain', goOn);
  };
  from.on('data', pass);
  to.on('drain', goOn);
  to.once('close', stop);
  return stop;
};

import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';

export interface FlowTerms {
  readonly clock: Clock;
  /** Bytes went through. */
  readonly moved: () => void;
  /** The writer took nothing for `stallMs`. */
  readonly stalled: () => void;
  readonly stallMs: number;
}

/**
 * Passes on what comes, as fast as it is taken, and notices who takes nothing any more. Ends are
 * for the caller. Answers a function that stops it; what comes after that is dropped.
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

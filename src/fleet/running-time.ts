import type { Clock } from '../contracts/clock.ts';

export interface RunningTerms {
  readonly clock: Clock;
  /** How long this process has to run, in ms; asked for after each step. */
  readonly forMs: () => number;
  /** In ms. */
  readonly stepMs: number;
}

/**
 * Calls `due` once this process has run for so long, and has read what came by then. It counts
 * steps, not time: a process that stood still has sent and read nothing meanwhile, and its timers
 * come before what lies in its sockets. Returns the way to call that off.
 */
export const afterRunning = (
  { clock, forMs, stepMs }: RunningTerms,
  due: () => void,
): (() => void) => {
  let callOff = (): void => undefined;
  const turn = (then: () => void): void => {
    const waiting = setImmediate(then);
    callOff = () => clearImmediate(waiting);
  };
  const step = (ran: number): void => {
    const left = forMs() - ran;
    if (left <= 0) return turn(() => turn(due)); // between two of these sockets are read
    const ms = Math.min(stepMs, left);
    callOff = clock.at(clock.now() + ms, () => step(ran + ms));
  };
  step(0);
  return () => callOff();
};

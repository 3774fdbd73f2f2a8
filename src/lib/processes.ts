import type { ChildProcess } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';

const USUAL = 0;
/**
 * The daemon's nice value. On a busy processor, the daemon gets three times the weight of the
 * processes that it starts.
 */
const FIRST = -5;

/** Raises this process's priority, if permitted. Keeps a priority other than the default. */
export const comeFirst = (): void => {
  if (getPriority() === USUAL) change(0, FIRST);
};

/** Resets a new child to the default priority if it inherited a higher one. */
export const atUsualPriority = <Child extends Pick<ChildProcess, 'pid'>>(child: Child): Child => {
  if (child.pid !== undefined && getPriority() < USUAL) change(child.pid, USUAL);
  return child;
};

/**
 * Returns a new child with pipes. Throws if too many descriptors are open: Node then starts
 * nothing, returns no pipes, and also emits an error event.
 */
export const withPipes = <Child extends ChildProcess>(child: Child): Child => {
  if (child.stdio !== undefined) return child;
  child.on('error', () => {}); // reported by the exception below
  throw new Error('no process can be started: too many descriptors are open');
};

/** Does nothing if this process lacks the right, or if the target no longer exists. */
const change = (pid: number, priority: number): void => {
  try {
    setPriority(pid, priority);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_SYSTEM_ERROR'))
      throw error;
  }
};

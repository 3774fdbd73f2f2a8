import type { ChildProcess } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';

const USUAL = 0;
/** On a busy processor, the daemon gets three times the weight of its children. */
const FIRST = -5;

/** If permitted. Keeps a priority other than the default. */
export const comeFirst = (): void => {
  if (getPriority() === USUAL) change(0, FIRST);
};

/** A new child may have inherited a higher priority. */
export const atUsualPriority = <Child extends Pick<ChildProcess, 'pid'>>(child: Child): Child => {
  if (child.pid !== undefined && getPriority() < USUAL) change(child.pid, USUAL);
  return child;
};

/**
 * Throws if too many descriptors are open: Node then returns no pipes, and also emits an error
 * event.
 */
export const withPipes = <Child extends ChildProcess>(child: Child): Child => {
  if (child.stdio !== undefined) return child;
  child.on('error', () => {}); // reported by the exception below
  throw new Error('no process can be started: too many descriptors are open');
};

/** Does nothing without the right, or if the target no longer exists. */
const change = (pid: number, priority: number): void => {
  try {
    setPriority(pid, priority);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_SYSTEM_ERROR'))
      throw error;
  }
};

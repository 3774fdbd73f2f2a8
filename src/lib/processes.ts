import type { ChildProcess } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';

const USUAL = 0;
/**
 * The daemon's nice value; where the processor is short, it gets three times the weight of the
 * processes that it starts.
 */
const FIRST = -5;

/**
 * Has this process come before others of the usual priority, where that is allowed. One that was
 * started with another priority keeps it.
 */
export const comeFirst = (): void => {
  if (getPriority() === USUAL) change(0, FIRST);
};

/** Gives a program that was just started the usual priority where it has inherited a higher one. */
export const atUsualPriority = <Child extends Pick<ChildProcess, 'pid'>>(child: Child): Child => {
  if (child.pid !== undefined && getPriority() < USUAL) change(child.pid, USUAL);
  return child;
};

/**
 * Passes on a program that was just started with pipes. Throws where too many descriptors are open:
 * Node has then begun nothing, gives no pipes, and says so once more by an event.
 */
export const withPipes = <Child extends ChildProcess>(child: Child): Child => {
  if (child.stdio !== undefined) return child;
  child.on('error', () => {}); // told here
  throw new Error('no process can be started: too many descriptors are open');
};

/**
 * Refused where the process is not root, or there is no such program any more: then nothing
 * changes.
 */
const change = (pid: number, priority: number): void => {
  try {
    setPriority(pid, priority);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_SYSTEM_ERROR'))
      throw error;
  }
};

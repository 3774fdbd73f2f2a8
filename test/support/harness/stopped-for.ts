import type { ChildProcess } from 'node:child_process';

/** By SIGSTOP, then SIGCONT; may take longer. */
export const stoppedFor = async (
  milliseconds: number,
  { pid }: Pick<ChildProcess, 'pid'>,
): Promise<void> => {
  if (pid === undefined) throw new Error('the process never began');
  process.kill(pid, 'SIGSTOP');
  try {
    await new Promise((resolve) => {
      setTimeout(resolve, milliseconds);
    });
  } finally {
    process.kill(pid, 'SIGCONT');
  }
};

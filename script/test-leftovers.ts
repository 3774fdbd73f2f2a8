import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** A process that a suite started and that is still there. `startTime` tells it from a later one of the same pid. */
export interface Leftover {
  readonly pid: number;
  readonly startTime: string;
  readonly command: string;
}

/**
 * The processes of a test run: those of its session, and those that name its folder in their arguments or their
 * environment, stand in it, or have a file of it open. A daemon's helpers and sandboxes leave their session, but
 * keep files of their data folder open.
 */
export const findLeftovers = (run: { readonly session: number; readonly folder: string }): readonly Leftover[] =>
  readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid).flatMap((name) => {
    const stat = statOf(name);
    if (!stat || stat.state === 'Z' || stat.state === 'X') return [];
    const command = read(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim();
    const belongs = stat.session === run.session
      || command.includes(run.folder)
      || read(`/proc/${name}/environ`).includes(run.folder)
      || linksOf(name).some((target) => target.startsWith(run.folder));
    return belongs ? [{ pid: Number(name), startTime: stat.startTime, command: command.slice(0, 160) }] : [];
  });

/** Waits up to `graceMs` for them to end by themselves; kills and answers those that have not. */
export const endLeftovers = async (run: { readonly session: number; readonly folder: string }, graceMs: number): Promise<readonly Leftover[]> => {
  const until = Date.now() + graceMs;
  let left = findLeftovers(run);
  while (left.length > 0 && Date.now() < until) {
    await pause(100);
    left = findLeftovers(run);
  }
  const stubborn = left;
  for (let round = 0; left.length > 0 && round < 50; round += 1) {
    for (const { pid, startTime } of left) if (statOf(String(pid))?.startTime === startTime) kill(pid);
    await pause(100);
    left = findLeftovers(run);
  }
  return stubborn;
};

const statOf = (pid: string): { state: string; session: number; startTime: string } | undefined => {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, session, startTime] = [fields[0], fields[3], fields[19]];
  return state && session && startTime ? { state, session: Number(session), startTime } : undefined;
};

const linksOf = (pid: string): readonly string[] => {
  const links = ['cwd', 'exe'];
  try {
    links.push(...readdirSync(`/proc/${pid}/fd`).map((fd) => `fd/${fd}`));
  } catch {
    // Another user's process, or one that has just ended.
  }
  return links.map((link) => {
    try {
      return readlinkSync(`/proc/${pid}/${link}`);
    } catch {
      return '';
    }
  });
};

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended in between.
  }
};

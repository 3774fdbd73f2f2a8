import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** `startTime` tells it from a later process of the same pid. */
export interface Leftover {
  readonly pid: number;
  readonly startTime: string;
  readonly command: string;
}

/** Facts are read on demand. */
export type Belongs = (seen: {
  readonly session: number;
  readonly command: string;
  readonly environment: () => string;
  readonly workingFolder: () => string;
  readonly filesOpen: () => readonly string[];
}) => boolean;

/**
 * By session; or with its folder in arguments, environment, working folder or open files: a
 * daemon's helpers and sandboxes leave their session, but keep files of the data folder open.
 */
export const ofRun =
  (run: { readonly session: number; readonly folder: string }): Belongs =>
  ({ session, command, environment, workingFolder, filesOpen }) =>
    session === run.session ||
    command.includes(run.folder) ||
    environment().includes(run.folder) ||
    workingFolder().startsWith(run.folder) ||
    filesOpen().some((file) => file.startsWith(run.folder));

/** By working folder or by a variable's beginning. */
export const standsIn =
  (folder: string, variable: string): Belongs =>
  ({ environment, workingFolder }) =>
    workingFolder().startsWith(folder) ||
    environment()
      .split('\0')
      .some((each) => each.startsWith(variable));

export const findLeftovers = (belongs: Belongs): readonly Leftover[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const stat = statOf(name);
      if (!stat || stat.state === 'Z' || stat.state === 'X') return [];
      const command = read(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim();
      const isOurs = belongs({
        session: stat.session,
        command,
        environment: () => read(`/proc/${name}/environ`),
        workingFolder: () => linkOf(name, 'cwd'),
        filesOpen: () => filesOf(name),
      });
      return isOurs
        ? [{ pid: Number(name), startTime: stat.startTime, command: command.slice(0, 160) }]
        : [];
    });

/** Kills and returns those that have not ended within `graceMs`. */
export const endLeftovers = async (
  belongs: Belongs,
  graceMs: number,
): Promise<readonly Leftover[]> => {
  const until = Date.now() + graceMs;
  let left = findLeftovers(belongs);
  while (left.length > 0 && Date.now() < until) {
    await pause(100);
    left = findLeftovers(belongs);
  }
  const stubborn = left;
  for (let round = 0; left.length > 0 && round < 50; round += 1) {
    for (const { pid, startTime } of left)
      if (statOf(String(pid))?.startTime === startTime) kill(pid);
    await pause(100);
    left = findLeftovers(belongs);
  }
  return stubborn;
};

const statOf = (pid: string): { state: string; session: number; startTime: string } | undefined => {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, session, startTime] = [fields[0], fields[3], fields[19]];
  return state && session && startTime ? { state, session: Number(session), startTime } : undefined;
};

/** With its program. */
const filesOf = (pid: string): readonly string[] => {
  const links = ['exe'];
  try {
    links.push(...readdirSync(`/proc/${pid}/fd`).map((fd) => `fd/${fd}`));
  } catch {
    // Another user's process, or one that has just ended.
  }
  return links.map((link) => linkOf(pid, link));
};

const linkOf = (pid: string, link: string): string => {
  try {
    return readlinkSync(`/proc/${pid}/${link}`);
  } catch {
    return '';
  }
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
    // It has ended.
  }
};

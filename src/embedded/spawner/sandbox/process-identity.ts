import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

/** The start time tells a reused pid from its former owner. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: ticks since boot. */
  readonly startTime: string;
}

export interface ProcessStat extends ProcessIdentity {
  readonly state: string;
  readonly parent: number;
  /** True even before its descriptors are closed. */
  readonly exiting: boolean;
}

/** Task flag in field 9 of /proc/PID/stat. */
const PF_EXITING = 4;

/** Start times may repeat after the next boot. */
export const readBootId = (): string =>
  readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** A zombie still has its stat. */
export const readProcessStat = (pid: number): ProcessStat | undefined => {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The name in parentheses may contain any character.
  const [state, parent, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const startTime = rest[17];
  if (!state || !parent || !startTime) return undefined;
  return {
    pid,
    startTime,
    state,
    parent: Number(parent),
    exiting: (Number(rest[4]) & PF_EXITING) !== 0,
  };
};

/** A zombie does not count. */
export const isAlive = (identity: ProcessIdentity): boolean => {
  const stat = readProcessStat(identity.pid);
  return (
    stat !== undefined &&
    stat.startTime === identity.startTime &&
    stat.state !== 'Z' &&
    stat.state !== 'X'
  );
};

/** Dead or exiting: no new process starts in its namespace. */
export const isEnding = (identity: ProcessIdentity): boolean =>
  !isAlive(identity) || readProcessStat(identity.pid)?.exiting !== false;

/** Reads all of /proc: not for each launch. */
export const childrenOf = (parent: number): readonly ProcessStat[] =>
  readdirSync('/proc').flatMap((name) => {
    const stat = /^\d+$/.test(name) ? readProcessStat(Number(name)) : undefined;
    return stat?.parent === parent ? [stat] : [];
  });

/** By first argument. Reads all of /proc. */
export const processesOf = (path: string, mode: string): readonly ProcessStat[] =>
  readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      if (
        readlinkSync(`/proc/${name}/exe`) !== path ||
        readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0')[1] !== mode
      )
        return [];
    } catch {
      return [];
    }
    const stat = readProcessStat(Number(name));
    return stat ? [stat] : [];
  });

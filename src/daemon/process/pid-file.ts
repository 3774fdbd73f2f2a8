import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `daemon.json` in the data folder, for the command line and a second start. It is a hint, not a
 * lock: if its process is gone, it counts as absent.
 */
export interface PidFile {
  readonly address: string;
  readonly metricsAddress?: string;
  readonly compatibleAddress?: string;
  readonly pid: number;
  /** Field 22 of /proc/PID/stat. With pid and boot id, it identifies one process. */
  readonly startTime: string;
  readonly bootId: string;
}

/** Atomic. */
export const writePidFile = (
  dataDir: string,
  address: string,
  others: Pick<PidFile, (typeof OTHERS)[number]> = {},
): void => {
  const note: PidFile = {
    address,
    ...othersOf(others),
    pid: process.pid,
    startTime: startTimeOf(process.pid) ?? '',
    bootId: bootId(),
  };
  const next = join(dataDir, `.daemon.json.${process.pid}`);
  writeFileSync(next, `${JSON.stringify(note)}\n`, { mode: 0o644 });
  renameSync(next, join(dataDir, 'daemon.json'));
};

export const readPidFile = (dataDir: string): PidFile | undefined => {
  try {
    const note = noteOf(JSON.parse(readFileSync(join(dataDir, 'daemon.json'), 'utf8')));
    return note && isRunning(note) ? note : undefined;
  } catch {
    return undefined; // missing, unreadable for this user, or not Sandpool's
  }
};

export const isRunning = (note: PidFile): boolean =>
  note.bootId === bootId() && startTimeOf(note.pid) === note.startTime;

export const removePidFile = (dataDir: string): void => {
  if (readPidFile(dataDir)?.pid === process.pid)
    rmSync(join(dataDir, 'daemon.json'), { force: true });
};

/** The command line reads this at every start, and a schema library would double its time. */
const noteOf = (value: unknown): PidFile | undefined => {
  if (
    typeof value !== 'object' ||
    value === null ||
    !('address' in value && 'pid' in value && 'startTime' in value && 'bootId' in value)
  )
    return undefined;
  const { address, pid, startTime, bootId: boot } = value;
  return isAddress(address) &&
    isPid(pid) &&
    typeof startTime === 'string' &&
    startTime !== '' &&
    typeof boot === 'string'
    ? { address, ...othersOf(value), pid, startTime, bootId: boot }
    : undefined;
};

const isAddress = (value: unknown): value is string =>
  typeof value === 'string' && /^https?:/.test(value) && URL.canParse(value);

const isPid = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0;

const OTHERS = ['metricsAddress', 'compatibleAddress'] as const;

const othersOf = (value: object): Pick<PidFile, (typeof OTHERS)[number]> =>
  Object.fromEntries(
    OTHERS.flatMap((name) => {
      const address: unknown = Reflect.get(value, name);
      return typeof address === 'string' ? [[name, address]] : [];
    }),
  );

const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

const startTimeOf = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
};

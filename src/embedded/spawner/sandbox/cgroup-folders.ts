import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

const CPU_PERIOD_US = 100_000;
/**
 * Weight of a sandbox among its tenant's sandboxes, in cgroup v2's units. A start weighs more,
 * because it holds a slot that others wait for, and must end soon even if its tenant is busy.
 */
export const WEIGHT = { running: 100, starting: 10_000 };
/** v1's equivalent of weight 100 in v2. */
const SHARES_OF_100 = 1_024;
/**
 * Prefix of a tenant's folder; an instance id never begins so. If CPU time is short, tenants get
 * equal shares, and each tenant's sandboxes share equally. All sandboxes together get no more than
 * the daemon.
 */
export const TENANT = 'tenant-';

/**
 * Removes the folders, and a tenant's folder with its last sandbox. Returns false while processes
 * are left in a folder. Absent folders count as removed.
 */
export const removeCgroups = (folders: readonly string[]): boolean => {
  let removed = true;
  for (const folder of folders) {
    if (!isRemoved(folder)) removed = false;
    if (basename(dirname(folder)).startsWith(TENANT)) isRemoved(dirname(folder));
  }
  return removed;
};

const isRemoved = (folder: string): boolean => {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return isMissing(error);
  }
};

/** Forbids new processes in these folders, if a pids controller counts them. */
export const forbidForks = (folders: readonly string[]): void => {
  for (const folder of folders) writeWherePresent(join(folder, 'pids.max'), '0');
};

/**
 * Ends the special limits of a start: sets the CPU limit of these folders, and the weight of a
 * running sandbox, if a CPU controller exists.
 */
export const endStart = (folders: readonly string[], cpuCores: number): void => {
  for (const folder of folders) {
    writeWherePresent(join(folder, 'cpu.max'), cpuMax(cpuCores));
    writeWherePresent(join(folder, 'cpu.cfs_quota_us'), cpuQuota(cpuCores));
    weigh(folder, WEIGHT.running);
  }
};

/** Formats the CPU limit for v2. */
export const cpuMax = (cpuCores: number): string => `${cpuQuota(cpuCores)} ${CPU_PERIOD_US}`;

/** Formats the CPU limit for v1: microseconds per period. */
export const cpuQuota = (cpuCores: number): string =>
  String(Math.max(1_000, Math.round(cpuCores * CPU_PERIOD_US)));

/** Sets a weight in v2's units, if a CPU controller exists. */
export const weigh = (folder: string, weight: number): void => {
  writeWherePresent(join(folder, 'cpu.weight'), String(weight));
  writeWherePresent(join(folder, 'cpu.shares'), String((weight * SHARES_OF_100) / 100));
};

/** Lists the pids in these folders. */
export const processesIn = (folders: readonly string[]): readonly number[] => {
  const pids = new Set<number>();
  for (const folder of folders) {
    const text = readWherePresent(join(folder, 'cgroup.procs'));
    for (const line of text.split('\n')) if (line !== '' && line !== '0') pids.add(Number(line));
  }
  return [...pids];
};

/** Counts the processes in these folders that the kernel killed for lack of memory. */
export const outOfMemoryIn = (folders: readonly string[]): number => {
  let count = 0;
  for (const folder of folders)
    for (const file of ['memory.events', 'memory.oom_control']) {
      const text = readWherePresent(join(folder, file));
      count += Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    }
  return count;
};

/** Returns a function that reports whether memory ran out in these folders since this call. */
export const watchMemory = (folders: readonly string[]): (() => boolean) => {
  const before = outOfMemoryIn(folders);
  return () => outOfMemoryIn(folders) > before;
};

const readWherePresent = (path: string): string => {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  } catch {
    return '';
  }
};

/** The folder may exist already. */
export const makeFolder = (base: string, id: string): string => {
  const folder = `${base}/${id}`;
  try {
    if (!existsSync(folder)) mkdirSync(folder);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  return folder;
};

export const subfoldersOf = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [`${folder}/${entry.name}`] : [],
  );

/**
 * Writes nothing if the file is missing, or the kernel refuses the value. Checks first: most files
 * of a start exist in only one hierarchy, and a failed call costs more.
 */
export const writeWherePresent = (path: string, text: string): void => {
  try {
    if (existsSync(path)) writeFileSync(path, text);
  } catch (error) {
    if (!isMissing(error) && !isRefused(error)) throw error;
  }
};

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;
const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT';
/** Swap accounting may be absent or off; current usage may exceed the new limit. */
const isRefused = (error: unknown): boolean =>
  ['EOPNOTSUPP', 'EACCES', 'EPERM', 'EBUSY'].includes(String(codeOf(error)));

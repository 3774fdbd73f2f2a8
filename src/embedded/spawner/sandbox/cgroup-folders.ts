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
 * The weight of a sandbox among those of its tenant, in cgroup v2's terms, once it runs and while
 * it starts. A start holds a turn that others wait for, so that it is to be over soon, however busy
 * its tenant's other sandboxes are.
 */
export const WEIGHT = { running: 100, starting: 10_000 };
/** v1's weight of what has 100 in v2. */
const SHARES_OF_100 = 1_024;
/**
 * A tenant's folder begins so, an id never does. Where there is not enough of the processor,
 * tenants have equal parts of it, a tenant's sandboxes equal parts of its own, and all of them
 * together no more than the daemon has.
 */
export const TENANT = 'tenant-';

/**
 * Removes the folders, and a tenant's with its last one; answers false while processes are still in
 * one. Absent ones count as removed.
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

/** Forbids the processes in these folders to start more, where processes are counted. */
export const forbidForks = (folders: readonly string[]): void => {
  for (const folder of folders) writeWherePresent(join(folder, 'pids.max'), '0');
};

/**
 * Ends the terms of a start: from now on the processes in these folders may use so much of the
 * processor, and weigh as the others of their tenant, wherever the processor's time can be limited.
 */
export const endStart = (folders: readonly string[], cpuCores: number): void => {
  for (const folder of folders) {
    writeWherePresent(join(folder, 'cpu.max'), cpuMax(cpuCores));
    writeWherePresent(join(folder, 'cpu.cfs_quota_us'), cpuQuota(cpuCores));
    weigh(folder, WEIGHT.running);
  }
};

/** The limit of the processor's time as v2 writes it. */
export const cpuMax = (cpuCores: number): string => `${cpuQuota(cpuCores)} ${CPU_PERIOD_US}`;

/** The limit of the processor's time as v1 writes it: microseconds in each period. */
export const cpuQuota = (cpuCores: number): string =>
  String(Math.max(1_000, Math.round(cpuCores * CPU_PERIOD_US)));

/** In v2's terms, where there is a processor to share out. */
export const weigh = (folder: string, weight: number): void => {
  writeWherePresent(join(folder, 'cpu.weight'), String(weight));
  writeWherePresent(join(folder, 'cpu.shares'), String((weight * SHARES_OF_100) / 100));
};

/** The processes in these folders. */
export const processesIn = (folders: readonly string[]): readonly number[] => {
  const pids = new Set<number>();
  for (const folder of folders) {
    const text = readWherePresent(join(folder, 'cgroup.procs'));
    for (const line of text.split('\n')) if (line !== '' && line !== '0') pids.add(Number(line));
  }
  return [...pids];
};

/** Counts the processes in these folders that the kernel ended for want of memory. */
export const outOfMemoryIn = (folders: readonly string[]): number => {
  let count = 0;
  for (const folder of folders)
    for (const file of ['memory.events', 'memory.oom_control']) {
      const text = readWherePresent(join(folder, file));
      count += Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    }
  return count;
};

/** Returns what tells whether memory has run out in these folders since this call. */
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

/** May be there already. */
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
 * Writes nothing where there is no such file, or the kernel takes no such value. Looks first: most
 * of the files that a start tries are in one of several hierarchies, and a failed call costs more.
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
/** Swap accounting may be absent or switched off; more may be held than is allowed from now on. */
const isRefused = (error: unknown): boolean =>
  ['EOPNOTSUPP', 'EACCES', 'EPERM', 'EBUSY'].includes(String(codeOf(error)));

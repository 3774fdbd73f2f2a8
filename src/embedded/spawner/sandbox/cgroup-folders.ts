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
/** In v2's units. A start weighs more: it holds a slot that others wait for. */
export const WEIGHT = { running: 100, starting: 10_000 };
/** v1's equivalent of v2's 100. */
const SHARES_OF_100 = 1_024;
/** No instance id begins so. Tenants share CPU time equally, as do sandboxes of a tenant. */
export const TENANT = 'tenant-';

/** Returns false while processes are left. Absent folders count as removed. */
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

export const forbidForks = (folders: readonly string[]): void => {
  for (const folder of folders) writeWherePresent(join(folder, 'pids.max'), '0');
};

/** Sets the sandbox's CPU limit and usual weight. */
export const endStart = (folders: readonly string[], cpuCores: number): void => {
  for (const folder of folders) {
    writeWherePresent(join(folder, 'cpu.max'), cpuMax(cpuCores));
    writeWherePresent(join(folder, 'cpu.cfs_quota_us'), cpuQuota(cpuCores));
    weigh(folder, WEIGHT.running);
  }
};

export const cpuMax = (cpuCores: number): string => `${cpuQuota(cpuCores)} ${CPU_PERIOD_US}`;

/** For v1, in µs per period. */
export const cpuQuota = (cpuCores: number): string =>
  String(Math.max(1_000, Math.round(cpuCores * CPU_PERIOD_US)));

export const weigh = (folder: string, weight: number): void => {
  writeWherePresent(join(folder, 'cpu.weight'), String(weight));
  writeWherePresent(join(folder, 'cpu.shares'), String((weight * SHARES_OF_100) / 100));
};

export const processesIn = (folders: readonly string[]): readonly number[] => {
  const pids = new Set<number>();
  for (const folder of folders) {
    const text = readWherePresent(join(folder, 'cgroup.procs'));
    for (const line of text.split('\n')) if (line !== '' && line !== '0') pids.add(Number(line));
  }
  return [...pids];
};

/** Counts processes that the kernel killed for lack of memory. */
export const outOfMemoryIn = (folders: readonly string[]): number => {
  let count = 0;
  for (const folder of folders)
    for (const file of ['memory.events', 'memory.oom_control']) {
      const text = readWherePresent(join(folder, file));
      count += Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    }
  return count;
};

/** The function reports whether memory has run out since. */
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

/** Ignores a missing file or a refused value. Checks first, because a failed call costs more. */
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
/** Swap accounting may be off; usage may exceed the new limit. */
const isRefused = (error: unknown): boolean =>
  ['EOPNOTSUPP', 'EACCES', 'EPERM', 'EBUSY'].includes(String(codeOf(error)));

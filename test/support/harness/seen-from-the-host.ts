import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '../../../src/embedded/spawner/sandbox/process-identity.ts';
import { readNote } from '../../../src/embedded/spawner/sandbox/notes.ts';

/** A sandbox's processes, as root or the daemon's user sees them on this machine. */

export const initIdentityOf = (dataDir: string, id: string): ProcessIdentity => {
  const { running } = readNote(join(dataDir, 'run', id), id);
  if (!running) throw new Error(`${id} does not run`);
  return running.init;
};

export const initOf = (dataDir: string, id: string): number => initIdentityOf(dataDir, id).pid;

/** In the pid namespace that `init` leads. */
export const processesBeside = (init: number): readonly number[] => {
  const space = linkOf(`/proc/${init}/ns/pid`);
  if (space === '') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && linkOf(`/proc/${name}/ns/pid`) === space)
    .map(Number);
};

/** Host ids of all processes in a sandbox's own /proc. */
export const idsInside = (init: number): readonly string[] => {
  const proc = `/proc/${init}/root/proc`;
  return readdirSync(proc)
    .flatMap((name) => textOf(`${proc}/${name}/status`).match(/^[UG]id:.*$/gm) ?? [])
    .map((line) => line.slice(4).trim());
};

/** Empty if it has ended. */
export const statusField = (pid: number, field: string): string => {
  const line = textOf(`/proc/${pid}/status`)
    .split('\n')
    .find((text) => text.startsWith(`${field}:`));
  return (
    line
      ?.slice(field.length + 1)
      .trim()
      .replaceAll('\t', ' ') ?? ''
  );
};

/** By words of its command line. */
export const withCommand = (pids: readonly number[], words: string): number | undefined =>
  pids.find((pid) => textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').includes(words));

export const cgroupOf = (pid: number): string => textOf(`/proc/${pid}/cgroup`);

export const namespacesOf = (pid: number): Readonly<Record<string, string>> =>
  Object.fromEntries(
    ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'].map((kind) => [
      kind,
      linkOf(`/proc/${pid}/ns/${kind}`),
    ]),
  );

export const descriptorsOf = (pid: number): Readonly<Record<string, string>> => {
  try {
    return Object.fromEntries(
      readdirSync(`/proc/${pid}/fd`).map((fd) => [fd, linkOf(`/proc/${pid}/fd/${fd}`)]),
    );
  } catch {
    return {};
  }
};

/** In bytes, with garbage; `processProbe` excludes it. */
export const residentOf = (pid: number): number =>
  Number(/^\d+/.exec(statusField(pid, 'VmRSS'))?.[0] ?? 0) * 1_024;

/** NaN if it has ended. */
export const writtenBy = (pid: number): number =>
  Number(/^wchar: (\d+)$/m.exec(textOf(`/proc/${pid}/io`))?.[1]);

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

const linkOf = (path: string): string => {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
};

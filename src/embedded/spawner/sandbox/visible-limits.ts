import { availableParallelism } from 'node:os';
import type { ContainerDefinition } from '../../../model/templates/template.ts';
import type { IsolationLevel } from './cgroups.ts';

/** Hierarchies of cgroup v1 that hold limits. */
const SHOWN_V1 = ['memory', 'cpu', 'pids'] as const;
const ROOT = '/sys/fs/cgroup';

/**
 * Makes bubblewrap's options that show the sandbox its own cgroups, read-only, where runtimes look
 * for limits. The sandbox is in a cgroup namespace, so paths in /proc/self/cgroup agree.
 */
export const ownCgroups = (
  level: IsolationLevel,
  folders: readonly string[],
): readonly string[] => {
  if (level === 'cgroup-v2') return folders.slice(0, 1).flatMap((at) => ['--ro-bind', at, ROOT]);
  return SHOWN_V1.flatMap((controller) =>
    folders
      .filter((folder) => folder.startsWith(`${ROOT}/${controller}/`))
      .flatMap((folder) => ['--ro-bind', folder, `${ROOT}/${controller}`]),
  );
};

/**
 * Makes variables for runtimes that would otherwise size themselves by the whole machine. `nproc`
 * follows OMP_NUM_THREADS. A JVM reads limits from cgroup v2, but not from a part of v1. Processors
 * are not assigned: sandboxes on one processor would wait while others are idle.
 */
export const limitVariables = (
  level: IsolationLevel,
  { cpuCores, memoryBytes }: Pick<ContainerDefinition, 'cpuCores' | 'memoryBytes'>,
): Readonly<Record<string, string>> => {
  const processors = Math.max(1, Math.ceil(cpuCores));
  const fewer = processors < availableParallelism();
  const java = [
    `-XX:MaxRAM=${memoryBytes}`,
    ...(fewer ? [`-XX:ActiveProcessorCount=${processors}`] : []),
  ];
  return {
    ...(fewer ? { OMP_NUM_THREADS: String(processors), GOMAXPROCS: String(processors) } : {}),
    ...(level === 'cgroup-v2' ? {} : { JAVA_TOOL_OPTIONS: java.join(' ') }),
  };
};

import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { basename, join } from 'node:path';
import {
  cpuMax,
  cpuQuota,
  makeFolder,
  processesIn,
  removeCgroups,
  subfoldersOf,
  TENANT,
  weigh,
  WEIGHT,
  writeWherePresent,
} from './cgroup-folders.ts';
import { canFreeze } from './freezer.ts';

export interface Limits {
  readonly memoryBytes: number;
  readonly cpuCores: number;
  readonly processes: number;
}

export type IsolationLevel = 'cgroup-v2' | 'cgroup-v1' | 'prlimit' | 'none';

export interface Cgroups {
  readonly level: IsolationLevel;
  readonly warnings: readonly string[];
  readonly freezes: boolean;
  /** Processes have the weight of a start until `endStart`. May be repeated. */
  create(id: string, tenant: string, limits: Limits): readonly string[];
  all(): ReadonlyMap<string, readonly string[]>;
  remove(): void;
}

const ROOT = '/sys/fs/cgroup';
const V1_CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
/** v1 has a hierarchy for freezing; in v2 each folder can freeze. */
const FREEZER = 'freezer';
const PIDS_SHARE = 3 / 4;
const MEMORY_SHARE = 0.8;
/** In v2's units. A single other process has 100, so the daemon comes first. */
const WEIGHT_OF_ALL = 25;
/** v1 counts sockets' memory separately: this share of the sandbox's memory in addition. */
const SOCKETS_SHARE = 1 / 8;
const LEAST_FOR_SOCKETS = 8 * 2 ** 20;
/** Share of the TCP memory below the machine's pressure threshold; one tenant gets half. */
const TCP_SHARE = 3 / 4;
const SOCKETS = 'memory.kmem.tcp.limit_in_bytes';
/** Uses v2 in our own subtree, else v1, else only prlimit. */
export const findCgroups = (name: string): Cgroups => {
  const own = parseOwnCgroups(readFileSync('/proc/self/cgroup', 'utf8'));
  return (
    unified(own, name) ??
    split(own, name) ?? {
      level: 'prlimit',
      warnings: [
        'cgroups cannot be created here: memory and processes are limited only roughly, and ' +
          'cpu is not limited',
      ],
      freezes: false,
      create: () => [],
      all: () => new Map(),
      remove: () => {},
    }
  );
};

/** Folder of this process by controller; `''` is the unified hierarchy. */
export const parseOwnCgroups = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .trim()
      .split('\n')
      .flatMap((line) => {
        const [, controllers, ...path] = line.split(':');
        return (controllers ?? '')
          .split(',')
          .map((controller): [string, string] => [controller, path.join(':')]);
      }),
  );

const unified = (own: ReadonlyMap<string, string>, name: string): Cgroups | undefined => {
  const path = own.get('');
  if (path === undefined || !existsSync(join(ROOT, 'cgroup.controllers'))) return undefined;
  const base = join(ROOT, path, name);
  try {
    stepAside(join(ROOT, path), `${name}-daemon`);
    enableControllers(join(ROOT, path));
    mkdirSync(base, { recursive: true });
    enableControllers(base);
  } catch {
    return undefined;
  }
  const controllers = readFileSync(join(base, 'cgroup.subtree_control'), 'utf8').trim().split(' ');
  const missing = V1_CONTROLLERS.filter((controller) => !controllers.includes(controller));
  if (missing.includes('memory') && missing.includes('pids')) return undefined;
  limitAllProcesses(base);
  if (!missing.includes('memory'))
    writeWherePresent(join(base, 'memory.max'), String(memoryOfAll()));
  weigh(base, WEIGHT_OF_ALL);
  return {
    level: 'cgroup-v2',
    warnings: missing.map(
      (controller) =>
        `cgroup v2 has no ${controller} controller here: ${controller} is not limited`,
    ),
    freezes: canFreeze([base]),
    create: (id, tenant, limits) => {
      const shared = makeFolder(base, folderOf(tenant));
      enableControllers(shared);
      const folder = makeFolder(shared, id);
      if (!missing.includes('memory')) {
        writeFileSync(join(folder, 'memory.max'), String(limits.memoryBytes));
        writeWherePresent(join(folder, 'memory.swap.max'), '0');
      }
      if (!missing.includes('pids'))
        writeFileSync(join(folder, 'pids.max'), String(limits.processes));
      if (!missing.includes('cpu')) writeFileSync(join(folder, 'cpu.max'), cpuMax(limits.cpuCores));
      weigh(folder, WEIGHT.starting);
      return [folder];
    },
    all: () => foldersIn([base]),
    remove: () => {
      removeCgroups([base]);
    },
  };
};

/** Only a folder without processes can delegate controllers. */
const stepAside = (folder: string, leaf: string): void => {
  const present = readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8');
  if (V1_CONTROLLERS.every((controller) => present.includes(controller))) return;
  mkdirSync(join(folder, leaf), { recursive: true });
  for (const pid of processesIn([folder]))
    writeWherePresent(join(folder, leaf, 'cgroup.procs'), String(pid));
};

const enableControllers = (folder: string): void => {
  const present = readFileSync(join(folder, 'cgroup.controllers'), 'utf8').trim().split(' ');
  for (const controller of V1_CONTROLLERS) {
    if (present.includes(controller))
      writeFileSync(join(folder, 'cgroup.subtree_control'), `+${controller}`);
  }
};

const split = (own: ReadonlyMap<string, string>, name: string): Cgroups | undefined => {
  const bases = new Map<string, string>();
  for (const controller of [...V1_CONTROLLERS, FREEZER]) {
    const path = own.get(controller);
    if (path === undefined) continue;
    const parent = join(ROOT, controller, path);
    try {
      accessSync(parent, constants.W_OK);
      mkdirSync(join(parent, name), { recursive: true });
      bases.set(controller, join(parent, name));
    } catch {
      // Not usable by us.
    }
  }
  if (!bases.has('memory') && !bases.has('pids')) return undefined;
  const missing = V1_CONTROLLERS.filter((controller) => !bases.has(controller));
  limitAllProcesses(bases.get('pids'));
  const memory = bases.get('memory');
  const sockets = memory !== undefined && existsSync(join(memory, SOCKETS)) ? socketsOfAll() : 0;
  if (memory !== undefined) {
    writeWherePresent(join(memory, 'memory.limit_in_bytes'), String(memoryOfAll()));
    limitSockets(memory, sockets);
  }
  const cpu = bases.get('cpu');
  if (cpu !== undefined) weigh(cpu, WEIGHT_OF_ALL);
  return {
    level: 'cgroup-v1',
    warnings: [
      ...missing.map(
        (controller) =>
          `cgroup v1 has no usable ${controller} hierarchy here: ${controller} is not limited`,
      ),
      ...(memory === undefined || sockets > 0
        ? []
        : [`this kernel has no ${SOCKETS}: the memory of sandboxes' sockets is not limited`]),
    ],
    freezes: bases.has(FREEZER),
    create: (id, tenant, limits) =>
      [...bases].map(([controller, base]) => {
        const shared = makeFolder(base, folderOf(tenant));
        const folder = makeFolder(shared, id);
        if (controller === 'memory') {
          limitSockets(shared, sockets / 2);
          limitMemory(folder, limits.memoryBytes);
        } else if (controller === 'pids')
          writeFileSync(join(folder, 'pids.max'), String(limits.processes));
        else if (controller === 'cpu') {
          writeFileSync(join(folder, 'cpu.cfs_quota_us'), cpuQuota(limits.cpuCores));
          weigh(folder, WEIGHT.starting);
        }
        return folder;
      }),
    all: () => foldersIn([...bases.values()]),
    remove: () => {
      removeCgroups([...bases.values()]);
    },
  };
};

/** Keeps process ids for the machine and the daemon. */
const limitAllProcesses = (base: string | undefined): void => {
  if (base === undefined) return;
  const numbers = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
  writeWherePresent(join(base, 'pids.max'), String(Math.floor(numbers * PIDS_SHARE)));
};

/** In whole pages. */
const memoryOfAll = (): number => Math.floor((totalmem() * MEMORY_SHARE) / 4_096) * 4_096;

const limitMemory = (folder: string, bytes: number): void => {
  writeFileSync(join(folder, 'memory.limit_in_bytes'), String(bytes));
  writeWherePresent(join(folder, 'memory.memsw.limit_in_bytes'), String(bytes));
  limitSockets(folder, Math.max(bytes * SOCKETS_SHARE, LEAST_FOR_SOCKETS));
};

const limitSockets = (folder: string, bytes: number): void => {
  writeWherePresent(join(folder, SOCKETS), String(Math.floor(bytes)));
};

/**
 * Below this value the machine does not regulate TCP. The kernel counts pages of at least 4 KiB.
 */
const socketsOfAll = (): number =>
  Math.floor(
    Number(readFileSync('/proc/sys/net/ipv4/tcp_mem', 'utf8').split(/\s+/)[0]) * TCP_SHARE,
  ) * 4_096;

/** For file names: a tenant's name may contain any character, and is private. */
export const tenantMark = (tenant: string): string =>
  createHash('sha256').update(tenant).digest('hex').slice(0, 16);

const folderOf = (tenant: string): string => TENANT + tenantMark(tenant);

const foldersIn = (bases: readonly string[]): ReadonlyMap<string, readonly string[]> => {
  const found = new Map<string, string[]>();
  const tenants = bases
    .flatMap(subfoldersOf)
    .filter((folder) => basename(folder).startsWith(TENANT));
  for (const tenant of tenants) {
    for (const instance of subfoldersOf(tenant))
      found.set(basename(instance), [...(found.get(basename(instance)) ?? []), instance]);
  }
  return found;
};

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseOwnCgroups } from '../../embedded/spawner/sandbox/cgroups.ts';
import { type Check, ok, type Patient, problem, warning } from './finding.ts';

const TRIAL_MS = 10_000;
const CGROUPS = '/sys/fs/cgroup';
const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
const LEAST_FILES = 4_096;

export const nodeVersion: Check = () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 20 || (major === 20 && minor >= 19)
    ? ok('node', process.version)
    : problem(
        'node',
        `${process.version} is too old`,
        'install Node 20.19 or newer: https://nodejs.org/en/download',
      );
};

export const bubblewrap: Check = async ({ bwrapPath, config }) => {
  const { code, output } = await run(bwrapPath, ['--version']);
  if (code === 0) return ok('bubblewrap', output.replace(/^bubblewrap /, ''));
  const advice = 'install it: apt-get install bubblewrap';
  return config.isolation === 'none'
    ? warning('bubblewrap', `${bwrapPath} is missing; isolation is none`, advice)
    : problem('bubblewrap', `${bwrapPath} can’t be run: ${output}`, advice);
};

/** If this fails, every template fails. */
export const trialSandbox: Check = async ({ bwrapPath, config }) => {
  if (config.isolation === 'none')
    return warning(
      'sandboxes',
      'sandboxes are not isolated from this machine (isolation: none)',
      'unless this is a trial, set isolation: auto',
    );
  if (!existsSync(bwrapPath)) return [];
  const { code, output } = await run(bwrapPath, [
    '--unshare-all',
    '--die-with-parent',
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '/bin/true',
  ]);
  return code === 0
    ? ok('sandboxes', 'one can be started')
    : problem(
        'sandboxes',
        `none can be started: ${output}`,
        'see the line on namespaces; in a container, it needs to be privileged or to ' +
          'allow user namespaces',
      );
};

export const namespaces: Check = () => {
  const read = (name: string): string | undefined => {
    try {
      return readFileSync(`/proc/sys/${name}`, 'utf8').trim();
    } catch {
      return undefined;
    }
  };
  if (read('user/max_user_namespaces') === '0')
    return problem(
      'namespaces',
      'user namespaces are switched off',
      'sysctl user.max_user_namespaces=15000',
    );
  if (process.getuid?.() === 0) return ok('namespaces', 'allowed');
  if (read('kernel/unprivileged_userns_clone') === '0')
    return problem(
      'namespaces',
      'only root may create user namespaces',
      'sysctl kernel.unprivileged_userns_clone=1, or run the daemon as root',
    );
  if (read('kernel/apparmor_restrict_unprivileged_userns') === '1')
    return warning(
      'namespaces',
      'AppArmor restricts user namespaces to root',
      'give bwrap an AppArmor profile with userns, or sysctl ' +
        'kernel.apparmor_restrict_unprivileged_userns=0',
    );
  return ok('namespaces', 'allowed');
};

export const launcher: Check = ({ launcherPath }) => {
  try {
    accessSync(launcherPath, constants.X_OK);
    return ok('launcher', `built ${statSync(launcherPath).mtime.toISOString()}`);
  } catch {
    return problem('launcher', `${launcherPath} is missing`, 'build it: script/bootstrap');
  }
};

export const cgroups: Check = ({ daemon }) => {
  if (daemon) return [];
  const own = parseOwnCgroups(readFileSync('/proc/self/cgroup', 'utf8'));
  const v2 = usableV2(own.get(''));
  if (v2?.length === CONTROLLERS.length) return ok('cgroups', 'v2, with memory, pids and cpu');
  const v1 = CONTROLLERS.filter((controller) =>
    isWritable(join(CGROUPS, controller, own.get(controller) ?? '\0')),
  );
  const best = [...(v2 ?? [])].length >= v1.length ? (v2 ?? []) : v1;
  if (best === v1 && v1.length === CONTROLLERS.length)
    return ok('cgroups', 'v1, with memory, pids and cpu');
  const missing = CONTROLLERS.filter((controller) => !best.includes(controller));
  return warning(
    'cgroups',
    `${missing.join(', ')} cannot be limited exactly here`,
    process.getuid?.() === 0
      ? 'mount cgroup v2 with these controllers, or give this container a writable cgroup'
      : 'run the daemon as root, or delegate a cgroup to its user (systemd: Delegate=yes)',
  );
};

export const openFiles: Check = () => {
  const soft = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  const count = soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
  return count >= LEAST_FILES
    ? ok('open files', `at most ${soft ?? ''}`)
    : warning(
        'open files',
        `at most ${soft ?? ''}, which is too few for many sandboxes and connections`,
        `ulimit -n ${LEAST_FILES * 4} before the daemon starts (systemd: LimitNOFILE)`,
      );
};

/** The kernel counts some limits per host uid, and the whole machine shares others. */
export const sharedLimits: Check = ({ uid, daemon }) => {
  const without = daemon || uid !== 0 ? undefined : socketsUncounted();
  if (without !== undefined)
    return warning(
      'shared limits',
      `this kernel has no ${without}: the memory of sandboxes' sockets is limited only by ` +
        'net.ipv4.tcp_mem',
      'use cgroup v2, which counts it as memory',
    );
  return uid === 0
    ? ok('shared limits', 'each sandbox has its own host uid and limits')
    : warning(
        'shared limits',
        `all sandboxes have uid ${uid ?? 'of the daemon'}: one sandbox can use up what the ` +
          "kernel counts by user (processes without a cgroup, inotify watches, pipes' memory, " +
          'message queues, pending signals) for the others and the daemon',
        'run the daemon as root, so that each sandbox has its own host uid',
      );
};

const socketsUncounted = (): string | undefined => {
  const folder = parseOwnCgroups(readFileSync('/proc/self/cgroup', 'utf8')).get('memory');
  if (folder === undefined || !isWritable(join(CGROUPS, 'memory', folder))) return undefined;
  return existsSync(join(CGROUPS, 'memory', folder, 'memory.kmem.tcp.limit_in_bytes'))
    ? undefined
    : 'memory.kmem.tcp.limit_in_bytes';
};

/** An account with a sandbox's uid could read its files and end its processes. */
export const uidRange: Check = ({ config, etc }) => {
  if (process.getuid?.() !== 0 || config.isolation === 'none') return [];
  const { first, count } = config.uidRange;
  const last = first + count - 1;
  const accounts = linesOf(join(etc, 'passwd'))
    .map((line) => line.split(':'))
    .filter(([, , uid]) => Number(uid) >= first && Number(uid) <= last)
    .map(([name]) => name);
  const ranges = linesOf(join(etc, 'subuid'))
    .map((line) => line.split(':'))
    .filter(([, from, size]) => Number(from) <= last && Number(from) + Number(size) - 1 >= first)
    .map(([name]) => name);
  const advice = 'choose another range: uidRange.first';
  if (accounts.length > 0)
    return problem(
      'uid range',
      `${first} to ${last} holds accounts: ${accounts.slice(0, 5).join(', ')}`,
      advice,
    );
  if (ranges.length > 0)
    return warning(
      'uid range',
      `${first} to ${last} overlaps the containers’ range of ` +
        `${ranges.slice(0, 5).join(', ')} in ${join(etc, 'subuid')}`,
      advice,
    );
  return ok('uid range', `${first} to ${last}`);
};

const usableV2 = (path: string | undefined): readonly string[] | undefined => {
  if (
    path === undefined ||
    !existsSync(join(CGROUPS, 'cgroup.controllers')) ||
    !isWritable(join(CGROUPS, path))
  )
    return undefined;
  const present = readFileSync(join(CGROUPS, path, 'cgroup.controllers'), 'utf8')
    .trim()
    .split(' ');
  return CONTROLLERS.filter((controller) => present.includes(controller));
};

const isWritable = (folder: string): boolean => {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
};

const linesOf = (file: string): readonly string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];

const run = async (
  program: Patient['bwrapPath'],
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string }> => {
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TRIAL_MS,
    killSignal: 'SIGKILL',
    env: {},
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(0, 500);
    });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, output: output.trim().split('\n')[0] ?? '' };
  } catch (error) {
    return { code: null, output: error instanceof Error ? error.message : String(error) };
  }
};

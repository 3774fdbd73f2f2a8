import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Readable, Writable } from 'node:stream';
import { rememberChild } from '../../local-cluster/started-processes.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

const native = fileURLToPath(new URL('../../native/', import.meta.url));

/** Whether these tests run as root, so that sandboxes get a host uid of their own. */
export const asRoot = process.getuid?.() === 0;

/** The uid and gid that standard sandboxes have on the host. */
export const hostUid = asRoot ? 200_001 : (process.getuid?.() ?? 0);

export const insideUid = 1000;

/** A folder that every uid can reach, whatever the modes above the working copy. */
export interface Workshop {
  readonly folder: string;
  readonly launcher: string;
  /** The program of escape probes, statically linked. */
  readonly probe: string;
  /** Ends what is left of processes and sandboxes, and removes the folder. */
  close(): void;
}

/** All that these helpers started, to be ended by `Workshop.close` where a test failed to. */
const started: {
  readonly children: ChildProcess[];
  readonly sandboxes: Pick<Sandbox, 'pid' | 'startTime'>[];
} = { children: [], sandboxes: [] };

function endAll(): void {
  for (const { pid, startTime } of started.sandboxes.splice(0))
    if (startTimeOf(pid) === startTime) process.kill(pid, 'SIGKILL');
  for (const child of started.children.splice(0))
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
}

/** Builds the launcher and the probe. */
export function openWorkshop(): Workshop {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-native-'));
  chmodSync(folder, 0o755);
  run(join(native, 'build'), []);
  const launcher = join(folder, 'launcher');
  copyFileSync(join(native, 'build-output/launcher'), launcher);
  const probe = join(folder, 'probe');
  const source = fileURLToPath(new URL('./probe.c', import.meta.url));
  if (existsSync(source))
    run('cc', ['-std=gnu11', '-O1', '-static', '-Wall', '-Wextra', '-Werror', '-o', probe, source]);
  const close = (): void => {
    endAll();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  return { folder, launcher, probe, close };
}

function run(command: string, args: readonly string[]): void {
  const done = spawnSync(command, args, { encoding: 'utf8', timeout: NEVER_COMES_MS });
  if (done.status !== 0)
    throw new Error(`${command} failed: ${done.stdout}${done.stderr}${done.error ?? ''}`);
}

/**
 * Tokens of an order: each pair or triple is a keyword and its values. `go` is added by
 * `orderText`.
 */
export type OrderTokens = readonly (readonly string[])[];

export function orderText(tokens: OrderTokens, end = 'go\0'): string {
  return (
    tokens
      .flat()
      .map((token) => `${token}\0`)
      .join('') + end
  );
}

export interface SandboxOptions {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly network?: 'none' | 'host';
  readonly cgroups?: readonly string[];
  readonly limits?: OrderTokens;
  /** The uid that the launcher itself is started with, where the tests are root. */
  readonly startAs?: number;
  /** A command that starts the launcher. */
  readonly through?: readonly string[];
  readonly extraBwrap?: readonly string[];
  /** Volumes and a path in each, which the launcher opens; the first becomes descriptor 16. */
  readonly folders?: OrderTokens;
}

export interface Sandbox {
  /** bubblewrap's outer process. */
  readonly outer: ChildProcess;
  /** The init of its namespaces, on the host. */
  readonly pid: number;
  readonly startTime: string;
  /** What `launcher init` wrote on the ready pipe: nothing where the command runs. */
  readonly ready: string;
  /** All output so far and to come. */
  readonly output: Collected;
  readonly startAs: number | undefined;
  stop(): Promise<void>;
}

/** bubblewrap's flags as a sandbox of the embedded driver has them. */
export function bwrapOptions(workshop: Workshop, options: SandboxOptions): string[] {
  return [
    '--unshare-all',
    ...(options.network === 'host' ? ['--share-net'] : []),
    '--unshare-user',
    '--disable-userns',
    '--cap-drop',
    'ALL',
    '--new-session',
    '--clearenv',
    '--uid',
    String(insideUid),
    '--gid',
    String(insideUid),
    '--hostname',
    'sandbox',
    '--ro-bind',
    '/usr',
    '/usr',
    '--symlink',
    'usr/bin',
    '/bin',
    '--symlink',
    'usr/sbin',
    '/sbin',
    '--symlink',
    'usr/lib',
    '/lib',
    '--symlink',
    'usr/lib64',
    '/lib64',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--size',
    '1048576',
    '--tmpfs',
    '/dev/shm',
    '--remount-ro',
    '/dev',
    '--size',
    '8388608',
    '--tmpfs',
    '/tmp',
    '--size',
    '8388608',
    '--tmpfs',
    '/work',
    '--chdir',
    '/work',
    '--ro-bind',
    workshop.launcher,
    '/.sandpool/launcher',
    '--ro-bind-try',
    workshop.probe,
    '/.sandpool/probe',
    ...(options.extraBwrap ?? []),
    '--remount-ro',
    '/',
    ...Object.entries({ PATH: '/usr/bin:/bin', ...options.env }).flatMap(([name, value]) => [
      '--setenv',
      name,
      value,
    ]),
  ];
}

export function startOrder(workshop: Workshop, options: SandboxOptions): string[][] {
  const uid = options.startAs ?? hostUid;
  const args = [
    ...bwrapOptions(workshop, options),
    '--',
    '/.sandpool/launcher',
    'init',
    ...options.command,
  ];
  return [
    ['bwrap', '/usr/bin/bwrap'],
    ['uid', String(uid)],
    ['gid', String(uid)],
    ...(options.cgroups ?? []).map((folder) => ['cgroup', folder]),
    ...(options.limits ?? []).map((limit) => [...limit]),
    ...(options.folders ?? []).map((folder) => ['folder', ...folder]),
    ...args.map((arg) => ['arg', arg]),
  ];
}

/** Starts a sandbox by `launcher start`; resolves once its command runs or has failed to. */
export async function startSandbox(workshop: Workshop, options: SandboxOptions): Promise<Sandbox> {
  const [file, ...args] = [...(options.through ?? []), workshop.launcher, 'start'];
  const outer = spawn(file ?? '', args, {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    env: { HOST_SECRET: 'of the daemon' },
    ...identity(options.startAs),
  });
  const output = collect(outer);
  const info = text(readable(outer, 4));
  const ready = text(readable(outer, 5));
  writable(outer, 3).end(orderText(startOrder(workshop, options)));
  const described = await within(info, 'bwrap tells about the sandbox');
  const told = await within(ready, 'the ready pipe closes');
  if (!described) throw new Error(`no sandbox: ${(await output.end).stderr}`);
  const pid: number = JSON.parse(described)['child-pid'];
  const startTime = startTimeOf(pid) ?? 'gone';
  started.sandboxes.push({ pid, startTime });
  const stop = async (): Promise<void> => {
    if (startTimeOf(pid) === startTime) process.kill(pid, 'SIGKILL');
    await within(output.end, 'the sandbox ends');
  };
  return { outer, pid, startTime, ready: told, output, startAs: options.startAs, stop };
}

export interface JoinOptions {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly cgroups?: readonly string[];
  readonly startTime?: string;
  /** A command that starts the launcher. */
  readonly through?: readonly string[];
}

export function joinOrder(
  sandbox: Pick<Sandbox, 'pid' | 'startTime'>,
  options: JoinOptions,
): string[][] {
  return [
    ['pid', String(sandbox.pid)],
    ['starttime', options.startTime ?? sandbox.startTime],
    ['insideuid', String(insideUid)],
    ['insidegid', String(insideUid)],
    ['cwd', options.cwd ?? '/work'],
    ...(options.cgroups ?? []).map((folder) => ['cgroup', folder]),
    ...Object.entries(options.env ?? { PATH: '/usr/bin:/bin' }).map(([name, value]) => [
      'env',
      `${name}=${value}`,
    ]),
    ...options.command.map((arg) => ['arg', arg]),
  ];
}

/** Starts `launcher join`; its process is the parent half. */
export function joinSandbox(
  workshop: Workshop,
  sandbox: Sandbox,
  options: JoinOptions,
): ChildProcess {
  const [file, ...args] = [...(options.through ?? []), workshop.launcher, 'join'];
  const half = spawn(file ?? '', args, {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    env: { HOST_SECRET: 'of the daemon' },
    ...identity(sandbox.startAs),
  });
  writable(half, 3).end(orderText(joinOrder(sandbox, options)));
  return half;
}

/** Runs a command in the sandbox to its end. */
export async function exec(
  workshop: Workshop,
  sandbox: Sandbox,
  options: JoinOptions,
): Promise<Ended> {
  const half = joinSandbox(workshop, sandbox, options);
  half.stdin?.end();
  return within(collect(half).end, 'the command ends');
}

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Collected {
  readonly end: Promise<Ended>;
  /** Resolves once stdout holds the words. */
  shows(words: string): Promise<void>;
}

export function collect(child: ChildProcess): Collected {
  started.children.push(child);
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  rememberChild(child.spawnargs.join(' ').slice(0, 200), child, () => stdout + stderr);
  const end = once(child, 'close').then((): Ended => ({
    stdout,
    stderr,
    code: child.exitCode,
    signal: child.signalCode,
  }));
  const shows = async (words: string): Promise<void> => {
    let isOver = false; // it has ended, and all that it printed is read
    void end.then(() => (isOver = true));
    while (!stdout.includes(words)) {
      if (isOver || !child.stdout) throw new Error(`ended without ${words}: ${stdout}${stderr}`);
      await within(Promise.race([once(child.stdout, 'data'), end]), words);
    }
  };
  return { end, shows };
}

/** Field 22 of the process's stat, undefined where there is no such process or it is a zombie. */
export function startTimeOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** The fields of /proc/PID/status; none where there is no such process, or no longer. */
export function statusOf(pid: number): Map<string, string> {
  const lines = statusTextOf(pid).trim().split('\n');
  return new Map(lines.map((line) => [line.split(':')[0] ?? '', line.replace(/^[^:]*:\s*/, '')]));
}

function statusTextOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

/** Its words with spaces between; empty where there is no such process, or no longer. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0$/, '').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** Host pids of all processes in a sandbox, by its pid namespace. */
export function processesIn(sandbox: Sandbox): number[] {
  const listed = spawnSync(
    'find',
    ['/proc', '-maxdepth', '3', '-path', '/proc/[0-9]*/ns/pid', '-lname', namespaceOf(sandbox.pid)],
    { encoding: 'utf8' },
  );
  return listed.stdout
    .split('\n')
    .flatMap((path) => path.match(/^\/proc\/(\d+)\//)?.[1] ?? [])
    .map(Number);
}

function namespaceOf(pid: number): string {
  return spawnSync('readlink', [`/proc/${pid}/ns/pid`], { encoding: 'utf8' })
    .stdout.trim()
    .replace(/[[\]]/g, '\\$&');
}

export async function within<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited for: ${what}`)), NEVER_COMES_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * A cgroup v1 folder under each of the controllers that are there and writable; none where there is
 * no v1.
 */
export function makeCgroups(name: string): { readonly folders: readonly string[]; close(): void } {
  const folders = ['pids', 'memory']
    .map((controller) => `/sys/fs/cgroup/${controller}`)
    .filter((root) => asRoot && existsSync(join(root, 'tasks')))
    .map((root) => join(root, name));
  for (const folder of folders) mkdirSync(folder);
  return { folders, close: () => folders.forEach((folder) => rmdirSync(folder)) };
}

export function writable(child: ChildProcess, fd: number): Writable {
  const stream = child.stdio[fd];
  if (!stream || !('write' in stream)) throw new Error(`no pipe on ${fd}`);
  // the other end may be gone before all is written; the exit code tells
  stream.on('error', () => undefined);
  return stream;
}

export function readable(child: ChildProcess, fd: number): Readable {
  const stream = child.stdio[fd];
  if (!stream || !('read' in stream)) throw new Error(`no pipe on ${fd}`);
  return stream;
}

export async function text(stream: Readable): Promise<string> {
  let all = '';
  for await (const chunk of stream) all += String(chunk);
  return all;
}

function identity(uid: number | undefined): { uid?: number; gid?: number } {
  return uid === undefined ? {} : { uid, gid: uid };
}

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, posix } from 'node:path';
import type { ContainerDefinition, InstanceDefinition } from '../../../model/templates/template.ts';
import type { HostMount, ImageRoot, InsideIds } from '../protocol.ts';
import { copyToolchainEtc } from './host-etc.ts';
import { everydayNames, NAMES_INSIDE } from './everyday-names.ts';

/** Without an image. */
export const INSIDE_ID = 1_000;
export const HOME = '/home/sandbox';
/** Names that programs expect for the home, and the home as seen from there. */
const HOME_LINKS = [
  ['/home/user', 'sandbox'],
  ['/workspace', 'home/sandbox'],
] as const;
export const LAUNCHER_INSIDE = '/.sandpool/launcher';

const RUN = '/run';

/** Host changes show up inside. */
const BOUND_ETC = ['alternatives', 'ssl/certs', 'ld.so.conf.d'] as const;

/** The maskedPaths (empty) and readonlyPaths of Docker and containerd. */
const MASKED_PROC = [
  'acpi',
  'asound',
  'interrupts',
  'kcore',
  'keys',
  'latency_stats',
  'timer_list',
  'timer_stats',
  'sched_debug',
  'scsi',
] as const;
const READ_ONLY_PROC = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'] as const;

/**
 * In memory, private to the sandbox; the shares are of its memory. Browsers and PyTorch need much
 * of /dev/shm.
 */
const WRITABLE = [
  { name: 'shm', at: '/dev/shm', share: 1 / 2, mode: '1777' },
  { name: 'tmp', at: '/tmp', share: 1 / 8, mode: '1777' },
  { name: 'run', at: RUN, share: 1 / 16, mode: '0755' },
  { name: 'home', at: HOME, share: 1 / 4, mode: '0755' },
] as const;
/** A working folder outside the others. */
const WORK = { name: 'work', share: 1 / 4, mode: '0755' } as const;
/** Links into them. */
const LINKS = [...HOME_LINKS.map(([name]) => name), '/var/tmp', '/var/run'] as const;
/** Only empty files meet this bound: others take 4 KiB. */
const BYTES_PER_FILE = 2_048;
const LEAST_FILES = 1_024;
const CAP_SYS_ADMIN = 1n << 21n;

/** See native/README.md. */
const FIRST_FOLDER_FD = 16;

const PATH = [
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
] as const;

const DEFAULT_ENV: Readonly<Record<string, string>> = {
  PATH: [`${HOME}/.local/bin`, ...PATH, NAMES_INSIDE].join(':'),
  HOME,
  USER: 'sandbox',
  LOGNAME: 'sandbox',
  SHELL: '/bin/sh',
  LANG: 'C.UTF-8',
  // Debian's pip refuses to install even into the home. No system is at risk in a sandbox.
  PIP_BREAK_SYSTEM_PACKAGES: '1',
};

export const environmentOf = (
  ...parts: readonly Readonly<Record<string, string>>[]
): Readonly<Record<string, string>> => Object.assign({}, DEFAULT_ENV, ...parts);

/** The machine or image as sandboxes see it. */
export interface Rootfs {
  readonly launcher: string;
  /** bubblewrap's options. */
  readonly system: readonly string[];
  readonly proc: readonly string[];
  /** Mounts here bound the number of files; absent if the spawner can't mount. */
  readonly writable?: string;
  /** Top-level names whose content can lead anywhere: nothing may be created below them. */
  readonly taken: readonly string[];
  readonly user: InsideIds;
}

export const rootfsOf = (own: Rootfs, image: ImageRoot | undefined): Rootfs =>
  image ? { ...own, system: image.system, taken: image.taken, user: image.user } : own;

/**
 * Fills `folder` with a minimal /etc and the launcher. Sandboxes mount it under their own host
 * uids: every parent must let everyone pass, and it contains no secrets.
 *
 * It may be filled again while sandboxes run, but not removed.
 */
export const prepareRootfs = (folder: string, launcherPath: string): Rootfs => {
  const etc = join(folder, 'etc');
  for (const path of [folder, etc, ...BOUND_ETC.map((name) => join(etc, name))])
    mkdirSync(path, { recursive: true, mode: 0o755 });
  put(
    join(etc, 'passwd'),
    Buffer.from(
      'root:x:0:0:root:/:/usr/sbin/nologin\n' +
        `sandbox:x:${INSIDE_ID}:${INSIDE_ID}:sandbox:${HOME}:/bin/sh\n` +
        `user:x:${INSIDE_ID}:${INSIDE_ID}:user:/home/user:/bin/sh\n` +
        'nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n',
    ),
  );
  put(
    join(etc, 'group'),
    Buffer.from(`root:x:0:\nsandbox:x:${INSIDE_ID}:\nuser:x:${INSIDE_ID}:\nnogroup:x:65534:\n`),
  );
  put(join(etc, 'hosts'), Buffer.from('127.0.0.1 localhost sandbox\n::1 localhost\n'));
  put(join(etc, 'hostname'), Buffer.from('sandbox\n'));
  put(join(etc, 'nsswitch.conf'), Buffer.from('passwd: files\ngroup: files\nhosts: files dns\n'));
  put(join(etc, 'resolv.conf'), Buffer.alloc(0));
  for (const name of ['ld.so.cache', 'ld.so.conf'])
    if (existsSync(join('/etc', name))) put(join(etc, name), readFileSync(join('/etc', name)));
  linkTimezone(etc);
  copyToolchainEtc({ from: '/etc', to: etc, put });
  put(join(folder, 'launcher'), readFileSync(launcherPath), 0o755);
  return {
    launcher: join(folder, 'launcher'),
    proc: maskedProc(folder),
    ...writableIn(folder),
    taken: ['usr', 'etc', 'proc', 'dev', 'bin', 'sbin', 'lib', 'lib64'],
    user: { uid: INSIDE_ID, gid: INSIDE_ID },
    system: [
      '--ro-bind',
      '/usr',
      '/usr',
      ...['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => topLevel(name)),
      '--ro-bind',
      etc,
      '/etc',
      ...BOUND_ETC.filter((name) => isFolder(join('/etc', name))).flatMap((name) => [
        '--ro-bind',
        join('/etc', name),
        join('/etc', name),
      ]),
      ...everydayNames(),
    ],
  };
};

/** Read-only files are the host's, and show each process its own namespaces. */
const maskedProc = (folder: string): readonly string[] => {
  const [file, directory] = [join(folder, 'nothing'), join(folder, 'nothing.d')];
  put(file, Buffer.alloc(0), 0o444);
  mkdirSync(directory, { recursive: true, mode: 0o555 });
  const present = (names: readonly string[]): readonly string[] =>
    names.map((name) => `/proc/${name}`).filter((path) => existsSync(path));
  return [
    ...present(MASKED_PROC).flatMap((path) => [
      '--ro-bind',
      isFolder(path) ? directory : file,
      path,
    ]),
    ...present(READ_ONLY_PROC).flatMap((path) => ['--ro-bind', path, path]),
  ];
};

const writableIn = (folder: string): Pick<Rootfs, 'writable'> => {
  const capabilities =
    /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  if (process.geteuid?.() !== 0 || (BigInt(`0x${capabilities}`) & CAP_SYS_ADMIN) === 0n) return {};
  const writable = join(folder, 'writable');
  for (const { name } of [...WRITABLE, WORK])
    mkdirSync(join(writable, name), { recursive: true, mode: 0o755 });
  return { writable };
};

/** Replaces the whole file, and only if it differs: sandboxes may be reading it. */
const put = (path: string, bytes: Buffer, mode = 0o644): void => {
  if (existsSync(path) && readFileSync(path).equals(bytes)) return;
  writeFileSync(`${path}.new`, bytes, { mode });
  chmodSync(`${path}.new`, mode);
  renameSync(`${path}.new`, path);
};

/** A link into /usr works inside as outside. */
const linkTimezone = (etc: string): void => {
  try {
    const target = readlinkSync('/etc/localtime');
    if (target.startsWith('/usr/') && !existsSync(join(etc, 'localtime')))
      symlinkSync(target, join(etc, 'localtime'));
  } catch {
    // UTC.
  }
};

/**
 * Makes bubblewrap's options for an instance. Only /home/sandbox, /tmp, /dev/shm, /run, a working
 * folder made here and the volumes are writable. All but the volumes are in memory; their sizes add
 * up to 19/16 of the sandbox's memory, and the memory cgroup, if any, bounds their sum.
 */
export const bwrapOptions = ({
  definition,
  container,
  rootfs,
  mounts = [],
}: {
  readonly definition: InstanceDefinition;
  readonly container: ContainerDefinition;
  readonly rootfs: Rootfs;
  readonly mounts?: readonly HostMount[];
}): readonly string[] => {
  const writable = (inside: string) => writableAt(inside, { container, rootfs, mounts });
  const workingDir = posix.normalize(container.workingDir);
  return [
    '--unshare-all',
    ...(definition.network === 'host' ? ['--share-net'] : []),
    '--unshare-user',
    '--disable-userns',
    '--uid',
    String(rootfs.user.uid),
    '--gid',
    String(rootfs.user.gid),
    '--cap-drop',
    'ALL',
    '--new-session',
    '--hostname',
    'sandbox',
    ...rootfs.system,
    ...(definition.network === 'host' && existsSync('/etc/resolv.conf')
      ? ['--ro-bind', '/etc/resolv.conf', '/etc/resolv.conf']
      : []),
    '--proc',
    '/proc',
    ...rootfs.proc,
    '--dev',
    '/dev',
    ...writable('/dev/shm'),
    '--remount-ro',
    '/dev',
    ...writable('/tmp'),
    ...runAndVar(rootfs, writable),
    ...writable(HOME),
    ...homeLinks(rootfs, mounts),
    // Before volumes, which may be mounted in it.
    ...(WRITABLE.some(({ at }) => at === workingDir) ? [] : writable(workingDir)),
    ...mounts.flatMap((mount) => mounted(mount, mounts, rootfs)),
    ...workingFolder(workingDir, rootfs),
    '--ro-bind',
    rootfs.launcher,
    LAUNCHER_INSIDE,
    '--remount-ro',
    '/',
    '--chdir',
    container.workingDir,
    '--clearenv',
    ...variables(container),
  ];
};

const variables = ({ env }: ContainerDefinition): readonly string[] =>
  Object.entries(environmentOf(env)).flatMap(([name, value]) => ['--setenv', name, value]);

/** Makes /run, /var/tmp and /var/run, unless the image has its own /run or /var. */
const runAndVar = (
  { taken }: Rootfs,
  writable: (inside: string) => readonly string[],
): readonly string[] => [
  ...(taken.includes('run') ? [] : writable(RUN)),
  ...(taken.includes('var')
    ? []
    : ['--symlink', '../tmp', '/var/tmp', '--symlink', '../run', '/var/run']),
];

interface Space {
  readonly container: ContainerDefinition;
  readonly rootfs: Pick<Rootfs, 'writable' | 'taken'>;
  readonly mounts?: readonly HostMount[];
}

/** Lists a sandbox's writable folders. A working folder that Sandpool makes is one of them. */
const writableOf = ({ container, rootfs: { taken }, mounts = [] }: Space) => {
  const folders = WRITABLE.filter(({ at }) => at !== RUN || !taken.includes('run'));
  const path = posix.normalize(container.workingDir);
  const own = [...folders.map(({ at }) => at), ...LINKS, LAUNCHER_INSIDE];
  const exists =
    taken.includes(path.split('/')[1] ?? '') ||
    [...own, ...mounts.map(({ target }) => target)].some((folder) => isWithin(path, folder)) ||
    own.some((folder) => isWithin(folder, path));
  return path === '/' || exists ? folders : [...folders, { ...WORK, at: path }];
};

const writableAt = (inside: string, space: Space): readonly string[] =>
  writableOf(space).flatMap(({ at, name, share, mode }) => {
    const { container, rootfs } = space;
    if (at !== inside) return [];
    return rootfs.writable === undefined
      ? ['--size', String(sizeOf(container, share)), '--perms', mode, '--tmpfs', at]
      : ['--bind', join(rootfs.writable, name), at];
  });

/** The launcher mounts them before bubblewrap binds them. Empty if the spawner can't mount. */
export const writableMounts = (
  space: Space,
  uid: number | undefined,
): readonly (readonly [folder: string, options: string])[] => {
  const { writable } = space.rootfs;
  if (writable === undefined || uid === undefined) return [];
  return writableOf(space).map(({ name, share, mode }) => {
    const size = sizeOf(space.container, share);
    const files = Math.max(LEAST_FILES, Math.floor(size / BYTES_PER_FILE));
    return [
      join(writable, name),
      `size=${size},nr_inodes=${files},mode=${mode},uid=${uid},gid=${uid}`,
    ];
  });
};

/**
 * Passed by descriptor: a sandbox could redirect a path out of the volume between check and mount.
 */
export const foldersOf = (
  mounts: readonly HostMount[],
): readonly (readonly [volume: string, path: string])[] =>
  mounts.flatMap(({ source, subPath }) => (subPath === undefined ? [] : [[source, subPath]]));

/** Links to the home, unless the image or a volume has something of that name. */
const homeLinks = ({ system, taken }: Rootfs, mounts: readonly HostMount[]): readonly string[] =>
  HOME_LINKS.flatMap(([name, home]) =>
    system.includes(name) ||
    taken.includes(name.slice(1)) ||
    mounts.some(({ target }) => isWithin(target, name))
      ? []
      : ['--symlink', home, name],
  );

const sizeOf = ({ memoryBytes }: ContainerDefinition, share: number): number =>
  Math.floor(memoryBytes * share);

const topLevel = (name: string): readonly string[] => {
  if (!existsSync(`/${name}`)) return [];
  try {
    return ['--symlink', readlinkSync(`/${name}`), `/${name}`];
  } catch {
    return ['--ro-bind', `/${name}`, `/${name}`];
  }
};

/**
 * Throws if the volume is missing, or if the image has an entry at the target, which could lead
 * anywhere.
 */
const mounted = (
  mount: HostMount,
  mounts: readonly HostMount[],
  { taken }: Rootfs,
): readonly string[] => {
  const { source, target, readOnly, subPath } = mount;
  if (!isFolder(source)) throw new Error(`the volume for ${target} is missing`);
  if (!isWithin(target, HOME) && taken.includes(target.split('/')[1] ?? ''))
    throw new Error(`no volume can be mounted at ${target}: the image already has a file there`);
  if (subPath === undefined) return [readOnly ? '--ro-bind' : '--bind', source, target];
  const before = foldersOf(mounts.slice(0, mounts.indexOf(mount))).length;
  return [readOnly ? '--ro-bind-fd' : '--bind-fd', String(FIRST_FOLDER_FD + before), target];
};

export const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(`${folder}/`);

/** An entry of the image could redirect it. */
const workingFolder = (path: string, { taken }: Rootfs): readonly string[] => {
  if (path === '/' || path === HOME) return [];
  return !path.startsWith(`${HOME}/`) && taken.includes(path.split('/')[1] ?? '')
    ? []
    : ['--dir', path];
};

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

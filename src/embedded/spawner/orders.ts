import { hostPath, type Bare } from './sandbox/bare-homes.ts';
import type { ProcessIdentity } from './sandbox/process-identity.ts';
import type { InsideIds } from './protocol.ts';
import { INSIDE_ID, LAUNCHER_INSIDE } from './sandbox/rootfs.ts';

/** Orders to the launcher; see native/README.md. */

export interface StartOrder {
  readonly bwrap: string;
  /** By default the spawner's own. */
  readonly uid: number | undefined;
  readonly cgroups: readonly string[];
  readonly output?: string;
  readonly rlimits: readonly (readonly [name: string, soft: string, hard: string])[];
  readonly options: readonly string[];
  /** See `writableMounts`. */
  readonly tmpfs?: readonly (readonly [folder: string, options: string])[];
  /** Whether the launcher makes the sandbox's own network; needs root. */
  readonly network?: boolean;
  /** See `foldersOf`. */
  readonly folders?: readonly (readonly [volume: string, path: string])[];
  /** Runs without bubblewrap. */
  readonly bare?: { readonly cwd: string; readonly env: Readonly<Record<string, string>> };
  readonly argv: readonly string[];
}

export interface JoinOrder {
  readonly init: ProcessIdentity;
  readonly user?: InsideIds;
  readonly bare?: Bare;
  readonly cgroups: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
}

export interface HoldOrder extends JoinOrder {
  readonly folder: string;
  readonly processId: string;
  /** Returned with the process's record. */
  readonly told: string;
  readonly input: boolean;
  readonly tty?: { readonly cols: number; readonly rows: number };
  readonly timeoutMs?: number;
  /** Hangs up when its first reader disconnects. */
  readonly bound?: true;
}

export interface AgentOrder {
  readonly init: ProcessIdentity;
  readonly user?: InsideIds;
  readonly bare?: Bare;
  readonly cgroups: readonly string[];
  readonly folder: string;
  readonly name: string;
}

export const startOrder = (order: StartOrder): Buffer =>
  encode([
    ...(order.uid === undefined ? [] : ['uid', String(order.uid), 'gid', String(order.uid)]),
    ...each('cgroup', order.cgroups),
    ...(order.output === undefined ? [] : ['output', order.output]),
    ...order.rlimits.flatMap((limit) => ['rlimit', ...limit]),
    ...(order.bare
      ? ['bare', 'cwd', order.bare.cwd, ...environment(order.bare.env), ...each('arg', order.argv)]
      : [
          ...(order.tmpfs ?? []).flatMap((mount) => ['tmpfs', ...mount]),
          ...(order.network ? ['network'] : []),
          ...(order.folders ?? []).flatMap((folder) => ['folder', ...folder]),
          'bwrap',
          order.bwrap,
          ...each('arg', order.options),
          ...each(
            'arg',
            waitsForever(order.argv)
              ? ['--as-pid-1', '--', LAUNCHER_INSIDE, 'init']
              : ['--', LAUNCHER_INSIDE, 'init', ...order.argv],
          ),
        ]),
  ]);

/**
 * Without a program, the launcher itself waits as the sandbox's first process, which no signal from
 * inside ends. So `kill -9 -1` or `pkill sleep` inside doesn't end such a sandbox.
 */
const waitsForever = ([program = '', ...args]: readonly string[]): boolean =>
  ['sleep', '/bin/sleep', '/usr/bin/sleep'].includes(program) && args.join(' ') === 'infinity';

export const joinOrder = (order: JoinOrder): Buffer => encode(joinTokens(order));

export const holdOrder = (order: HoldOrder): Buffer =>
  encode([
    ...['holder', order.folder, order.processId, 'told', order.told],
    ...(order.input ? ['input'] : []),
    ...(order.bound ? ['bound'] : []),
    ...(order.tty ? ['columns', String(order.tty.cols), 'rows', String(order.tty.rows)] : []),
    ...(order.timeoutMs === undefined
      ? []
      : ['timeout', String(Math.max(1, Math.ceil(order.timeoutMs)))]),
    ...joinTokens(order),
  ]);

const joinTokens = (order: JoinOrder): readonly string[] => [
  ...(order.bare ? ['bare'] : []),
  'pid',
  String(order.init.pid),
  'starttime',
  order.init.startTime,
  ...insideIds(order),
  ...each('cgroup', order.cgroups),
  'cwd',
  order.bare ? hostPath(order.bare.home, order.cwd) : order.cwd,
  ...environment(order.env),
  ...each('arg', order.argv),
];

export const forwardOrder = (order: AgentOrder): Buffer =>
  encode([
    ...(order.bare ? ['bare'] : []),
    'pid',
    String(order.init.pid),
    'starttime',
    order.init.startTime,
    ...each('cgroup', order.cgroups),
    ...each('arg', [order.folder, order.name]),
  ]);

export const filesOrder = (order: AgentOrder): Buffer =>
  encode([
    ...(order.bare ? ['bare', 'cwd', order.bare.home] : []),
    'pid',
    String(order.init.pid),
    'starttime',
    order.init.startTime,
    ...insideIds(order),
    ...each('cgroup', order.cgroups),
    ...each('arg', [order.folder, order.name]),
  ]);

const insideIds = ({ bare, user }: Pick<JoinOrder, 'bare' | 'user'>): readonly string[] => {
  const uid = bare?.uid ?? user?.uid ?? INSIDE_ID;
  const gid = bare
    ? bare.uid === process.getuid?.()
      ? (process.getgid?.() ?? uid)
      : uid
    : (user?.gid ?? INSIDE_ID);
  return ['insideuid', String(uid), 'insidegid', String(gid)];
};

const environment = (env: Readonly<Record<string, string>>): readonly string[] =>
  each(
    'env',
    Object.entries(env).map(([name, value]) => `${name}=${value}`),
  );

const each = (keyword: string, values: readonly string[]): readonly string[] =>
  values.flatMap((value) => [keyword, value]);

/** The rest of a token after a NUL would be read as further tokens. */
const encode = (tokens: readonly string[]): Buffer => {
  if (tokens.some((token) => token.includes('\0')))
    throw new Error('an order must not contain a NUL');
  return Buffer.from(`${tokens.join('\0')}\0go\0`);
};

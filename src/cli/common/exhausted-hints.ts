import { printable } from './printable.ts';

/**
 * Hints for a claim from a pool without an idle instance: its counts or its problem, then commands
 * for the remedy that the service names in `detail.action`. Shows the service's own hint if this
 * version does not know the remedy.
 */
export const exhaustedHints = (detail: Readonly<Record<string, unknown>>): readonly string[] => {
  const { problem, problemSince, running, starting } = detail;
  const remedies = remediesIn(detail);
  if (typeof problem === 'string') {
    const since = typeof problemSince === 'string' ? `, since ${problemSince}` : '';
    return [`its instances do not start${since}: ${problem}`, ...remedies];
  }
  if (typeof running !== 'number') return remedies;
  return [
    `${running} of the pool's sandboxes are running, ${Number(starting ?? 0)} are starting`,
    ...remedies,
  ];
};

const remediesIn = ({ action, hint, running }: Readonly<Record<string, unknown>>) => {
  const { type, ...names } = isObject(action) ? action : {};
  const remedies = REMEDIES.get(type)?.(pooled(names));
  if (!remedies) return typeof hint === 'string' ? [hint] : [];
  if (type !== 'enlarge-pool' || running === 0) return remedies;
  return [
    'delete a sandbox: sandpool sandboxes list, then: sandpool sandboxes delete SANDBOX',
    ...remedies.map((line) => `or ${line}`),
  ];
};

/** The pool that an action names: standalone or a member of an env, the caller's or another's. */
interface Pooled {
  readonly pool: string;
  readonly env?: string;
  readonly member: string;
  readonly owner?: string;
}

const pooled = ({ poolName, env, member, owner }: Readonly<Record<string, unknown>>): Pooled => ({
  pool: nameOf(poolName) ?? 'POOL',
  env: nameOf(env),
  member: nameOf(member) ?? 'MEMBER',
  owner: nameOf(owner),
});

const nameOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? printable(value) : undefined;

/** Commands by `action.type`. The service's hint is shown for a type that is absent. */
const REMEDIES = new Map<unknown, (pool: Pooled) => readonly string[]>([
  ['wait', () => ['instances are waiting to start: claim with --wait 60s, or try again shortly']],
  [
    'enlarge-pool',
    ({ pool, env, member, owner }) => {
      if (owner !== undefined) return [`ask ${owner}, the pool's owner, to enlarge it`];
      if (env === undefined)
        return [`enlarge the pool: sandpool pools update ${pool} --replicas N`];
      return [
        `enlarge the env: sandpool envs members update ${env} ${member} --max-replicas N ` +
          `(for its limits: sandpool envs explain ${env})`,
        'claim with --wait 60s, so that the env starts an instance for you',
      ];
    },
  ],
  [
    'change-image',
    (pool) => [
      `name another image: ${changing(pool)} --image IMAGE`,
      "if the registry needs a password: set overrides.imagePullSecret in that command's --file",
      AGAIN,
    ],
  ],
  [
    'reduce-resources',
    (pool) => [
      `request less: ${resizing(pool)} --cpu CPU --memory MEMORY`,
      'or delete a sandbox, or have nodes added',
      AGAIN,
    ],
  ],
  [
    'change-definition',
    (pool) => [`fix the cause: ${changing(pool)} --file FILE, or change its template`, AGAIN],
  ],
]);

const AGAIN = 'Sandpool tries again automatically';

const changing = ({ pool, env, owner }: Pooled): string =>
  sentBy(owner, env === undefined ? `pools update ${pool}` : `envs update ${env}`);

const resizing = ({ pool, env, member, owner }: Pooled): string =>
  sentBy(
    owner,
    env === undefined ? `pools update ${pool}` : `envs members update ${env} ${member}`,
  );

const sentBy = (owner: string | undefined, command: string): string =>
  owner === undefined ? `sandpool ${command}` : `as ${owner}, sandpool ${command}`;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

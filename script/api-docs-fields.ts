/** What the generated API page says about each operation and each field. script/api-docs.ts holds it against the schemas. */

export interface OperationNotes {
  /** What it does and promises. */
  readonly about: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, string>>;
  /** Of the answer's fields that no shape describes. */
  readonly answer?: Readonly<Record<string, string>>;
}

export interface Shape {
  /** The operation and the answer's field that show it with the fewest fields. */
  readonly of: string;
  readonly field: string;
  readonly about: string;
  readonly fields: Readonly<Record<string, string>>;
}

const LIMIT = 'How many to show.';
const OFFSET = 'How many to leave out first.';
const ADMIN_ALL = 'Of every tenant. Admins alone.';
const IDLE_TIMEOUT = 'End it after so long without activity; `"0"`, `0` and null are never.';

export const operationNotes: Readonly<Record<string, OperationNotes>> = {
  'GET /healthz': {
    about: 'Answers as soon as the process takes requests. It looks at nothing.',
    answer: { status: '' },
  },
  'GET /readyz': {
    about: 'Answers 503 with the same body, and `Retry-After`, while sandboxes can be neither started nor reached.',
    answer: {
      status: '',
      problems: 'What keeps it from being ready; empty when it is.',
      warnings: 'What works, but gives less than it should: see [security](security.md#levels).',
      isolation: 'The [level](security.md#levels) in force: `cgroup-v2`, `cgroup-v1`, `prlimit` or `none`.',
    },
  },
  'POST /sandboxes': {
    about: `
Takes the pool's longest idle instance and makes it the caller's. The claim is on disk before the answer, so what was
answered with 201 survives a kill -9 of the daemon. No other claim ever gets the same instance. The sandbox is Running at
once; nothing has to be waited for.

A caller claims from pools of their own alone; the pool is looked for in the caller's namespace. With no idle instance the
answer is 429 \`POOL_EXHAUSTED\`: \`Retry-After\` is 1 s while instances are starting, else 5 s. Claims do not wait. After 5 s
without a result the answer is 503, and the claim may have landed: list your sandboxes before you repeat it.`,
    body: {
      poolName: 'The pool to claim from. Needed; without it the answer is 400 with the message `poolName is required`.',
      idleTimeout: `${IDLE_TIMEOUT} Left out: what the template says.`,
    },
  },
  'GET /sandboxes': {
    about: `
The caller's sandboxes, newest claim first. Without \`phase\`: the claimed ones, and those that finished within the last 24
hours (\`history.listWindow\`). \`phase=Idle\` and \`phase=Starting\` show the unclaimed instances of the caller's pools.`,
    query: {
      poolName: 'Of this pool alone.',
      phase: 'In this phase alone.',
      namespace: 'Of this namespace. Admins alone.',
      team: 'Of this team. Admins alone.',
      user: 'Of this user. Admins alone.',
      all: ADMIN_ALL,
      limit: LIMIT,
      offset: OFFSET,
    },
    answer: {
      'items[].startedAt': 'When its main process started.',
      'items[].terminatedAt': 'When it ended.',
      'items[].recycledAt': 'When what it held was given back and its record closed.',
      'items[].durationSeconds': 'Whole seconds from its claim to its end, or to now.',
      'items[].cpu': 'Its limit, as the template has it.',
      'items[].memory': 'Its limit, as the template has it.',
      'items[].containerImages': 'Container to image.',
      'items[].endReason': 'Why it ended: see [end reasons](#end-reasons).',
    },
  },
  'GET /sandboxes/{sandboxId}': {
    about: 'One live sandbox, or an unclaimed instance of a pool of the caller\'s. A finished one is 404; the list shows it. Admins see any.',
    answer: { 'sandbox.endpoints': 'Endpoint name to URL. Always empty: ports are not published yet.' },
  },
  'DELETE /sandboxes/{sandboxId}': {
    about: `
Ends the sandbox with all that runs and lies in it. When the answer comes it is on disk that the sandbox ends; its
processes are gone a few milliseconds later, and the pool starts another. Legal in every state; repeating it is harmless
until it is finished, then 404. An unclaimed instance of a pool of the caller's is retired and replaced. Admins end any.`,
    answer: { sandboxId: '', namespace: '', poolName: '', podName: '', status: '' },
  },
  'POST /sandboxes/{sandboxId}/exec': {
    about: `
Runs one command and answers when it has ended. It runs as the sandbox's user, hardened like the main process. What it
left running in the background goes on. A client that goes away ends its command. At most 64 at a time a sandbox. While a
command runs the sandbox is not idle.`,
    body: {
      command: 'A text is run by `/bin/sh -c`, an array as it stands, without a shell.',
      timeoutSeconds: 'Then its whole process group is killed, and the answer is 200 with `timedOut`.',
      cwd: 'An absolute path; else the template\'s `workingDir`.',
      env: 'At most 128 variables, over those of the template. Names hold letters, digits and underscores.',
      stdin: 'Its standard input, then end of file. Left out: nothing.',
      container: 'The container\'s name. There is one, so it need not be said.',
    },
    answer: {
      stdout: 'At most 1 MiB. Bytes that are not UTF-8 become U+FFFD.',
      stderr: 'The same.',
      exitCode: 'The command\'s own, also when it is not 0. 128 + n after signal n, 127 not found, 126 not executable, 125 it could not be run at all, 124 timed out.',
      timedOut: '',
      truncated: 'Some output went beyond 1 MiB and was dropped.',
      durationMs: '',
    },
  },
  'POST /sandboxes/{sandboxId}/exec-token': {
    about: 'The token opens one [terminal](#terminal) in this sandbox, within 30 seconds. The answer is not to be cached (`Cache-Control: no-store`).',
    answer: { token: 'A secret: whoever has it has a shell.' },
  },
  'PUT /sandboxes/{sandboxId}/idle-timeout': {
    about: `
Needs one of the two fields, not both. It counts as activity, so the time begins anew. Activity is also: a command under
way, and bytes of a terminal either way. After a restart of the daemon every sandbox counts as just used.`,
    body: {
      idleTimeout: IDLE_TIMEOUT,
      idleTimeoutSeconds: 'The same in seconds; 0 and null are never.',
    },
    answer: {
      'sandbox.idleTimeout': '`0s` is never.',
      'sandbox.idleExpiresAt': 'When it ends if nothing happens. Absent where it never does.',
    },
  },
  'POST /sandboxpools': {
    about: 'The pool belongs to the caller, and its instances begin to start at once. Its name is unique in the namespace. It keeps the template as it is now: later changes of the template do not reach it.',
    body: {
      name: 'A DNS label.',
      templateName: 'One of the daemon\'s [templates](templates.md).',
      replicas: 'See [what replicas counts](decisions/0003-what-replicas-counts.md).',
      labels: 'At most 64. Data, never interpreted.',
      annotations: 'At most 64. Data, never interpreted.',
      template: 'Refused: inline definitions are not there yet.',
      overrides: 'Refused: overrides are not there yet.',
    },
  },
  'GET /sandboxpools': {
    about: 'The caller\'s pools.',
    query: { all: ADMIN_ALL, limit: LIMIT, offset: OFFSET },
  },
  'GET /sandboxpools/{name}': {
    about: 'Admins see, change and delete any pool of their own namespace by its name.',
  },
  'PUT /sandboxpools/{name}': {
    about: 'With fewer replicas, surplus instances are retired, unclaimed ones alone: those still starting first, then the longest idle. Running sandboxes are never touched. An empty body changes nothing.',
    body: {
      replicas: '',
      template: 'Refused: not there yet.',
      overrides: 'Refused: not there yet.',
    },
  },
  'DELETE /sandboxpools/{name}': {
    about: 'No claim succeeds any more (409), unclaimed instances go, and then the pool. Running sandboxes live on to their own end. Repeating it is harmless; `force` may be added later.',
    query: { force: 'End its running sandboxes too. `?force` alone is true.' },
    answer: { name: '', namespace: '', status: '' },
  },
  'POST /api-keys': {
    about: `
A key of the caller's own team, user and role. The body may be empty. The key is shown this once
(\`Cache-Control: no-store\`); the daemon keeps no more than an HMAC of it. A user has at most 1,000 keys.`,
    body: {
      name: 'A DNS label, unique in the namespace; else one is made up.',
      description: '',
      expiresAt: 'At most a year ahead (`keys.maxLifetime`). Left out: 90 days (`keys.defaultLifetime`).',
      team: 'Admins alone, as in `POST /admin/api-keys`.',
      user: 'The same.',
      role: 'The same.',
    },
    answer: issuedKey(),
  },
  'POST /admin/api-keys': {
    about: 'This is how further tenants come to be: a team and a user exist as soon as they have a key.',
    body: {
      team: 'A DNS label. The namespace follows from it (`namespacePattern`).',
      user: 'A DNS label.',
      role: 'Left out: `"user"`.',
      name: 'A DNS label, unique in the namespace; else one is made up.',
      description: '',
      expiresAt: 'As in `POST /api-keys`.',
    },
    answer: issuedKey(),
  },
  'GET /api-keys': {
    about: 'Never with the keys themselves. Expired ones show until they make room for others.',
    query: { limit: LIMIT, offset: OFFSET },
    answer: keyItems(),
  },
  'DELETE /api-keys/{keyId}': {
    about: 'It is worth nothing from then on, also where it is the one that asks. Terminals that are open stay open.',
    answer: { keyId: '', status: '' },
  },
  'GET /admin/api-keys': {
    about: '',
    query: { limit: LIMIT, offset: OFFSET },
    answer: keyItems(),
  },
  'DELETE /admin/api-keys/{name}': {
    about: 'The name is `{namespace}/{shortName}`, its `/` as `%2F`; or the short name alone, of the caller\'s namespace.',
    answer: { keyId: '', status: '' },
  },
  'DELETE /admin/api-keys/{namespace}/{shortName}': {
    about: '',
    answer: { keyId: '', status: '' },
  },
};

/** Of every paged list. */
export const pageFields: Readonly<Record<string, string>> = {
  total: 'How many there are in all, exactly.',
  limit: 'As asked.',
  offset: 'As asked.',
};

export const shapes: Readonly<Record<string, Shape>> = {
  Sandbox: {
    of: 'POST /sandboxes',
    field: 'sandbox',
    about: `
Status: \`Starting\` its process comes up · \`Idle\` unclaimed, ready or for the moment not · \`Running\` claimed ·
\`Stopping\` it ends · \`Failed\` an unclaimed one that died, until it is cleared away · \`Completed\` finished, in lists alone.

#### End reasons
\`deleted\` by its owner or an admin · \`force-deleted\` with its pool · \`idle-timeout\` · \`max-lifetime\` · \`exited\` its main
process ended · \`lost\` it was found dead, its exit code unknown · \`start-failed\`, \`start-timeout\`, \`retired\`: unclaimed ones.

#### Fields`,
    fields: {
      sandboxId: 'A UUID, version 7. The instance has it from its birth.',
      namespace: 'The owner\'s.',
      poolName: '',
      podName: '`sb-` and the id: the instance\'s name as a workload.',
      status: '',
      claimedAt: '',
      team: 'The owner\'s; of an unclaimed instance the pool\'s.',
      user: 'The same.',
    },
  },
  Pool: {
    of: 'GET /sandboxpools/{name}',
    field: 'template',
    about: `
The counts are exact. Phase: \`Pending\` not yet full since the daemon started · \`Ready\` all there · \`Scaling\` instances start
or go · \`Degraded\` some are unavailable, or starts keep failing while something is usable · \`Failed\` starts keep failing and
nothing is usable · \`Deleting\`. \`Updating\` is not used yet.`,
    fields: {
      name: '',
      namespace: '',
      cpu: 'Of each instance.',
      memory: 'Of each instance.',
      team: 'The owner\'s.',
      user: 'The owner\'s.',
      templateVersion: 'The template\'s version when the pool was made.',
      createdAt: '',
      labels: '',
      annotations: '`sandpool.dev/template-name` is the template\'s name.',
      'spec.replicas': 'How many there should be.',
      'status.phase': '',
      'status.idleReplicas': 'Ready to claim.',
      'status.unavailableIdleReplicas': 'Were ready, and are not now.',
      'status.runningReplicas': 'Claimed.',
      'status.startingReplicas': '',
      'status.stoppingReplicas': '',
      'status.failedReplicas': 'Unclaimed ones that died, until they are cleared away.',
    },
  },
};

function issuedKey(): Readonly<Record<string, string>> {
  return { apiKey: 'The key itself: a secret.', ...keyFields() };
}

function keyItems(): Readonly<Record<string, string>> {
  return { items: 'The fields of `POST /api-keys`’s answer, without `apiKey`.' };
}

function keyFields(): Readonly<Record<string, string>> {
  return {
    keyId: 'Its middle part. Logs show it.',
    name: '`{namespace}/{name}`.',
    user: '',
    team: '',
    role: '',
    description: '',
    issuedAt: '',
    expiresAt: '',
  };
}

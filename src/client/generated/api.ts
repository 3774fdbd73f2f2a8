/** Written by script/client-types.ts from the OpenAPI document. What each operation takes and answers, and where it is. */
/**
 * Each operation by its operationId.
 */
export interface Operations {
  /**
   * Whether the daemon runs
   */
  getHealth: {
    answer: Health;
  };
  /**
   * Whether the daemon can do its work, and how well it isolates
   */
  getReadiness: {
    answer: ReadinessReport;
  };
  /**
   * Claim an idle instance of a pool
   */
  claimSandbox: {
    body: ClaimSandboxBody;
    answer: SandboxEnvelope;
  };
  /**
   * List sandboxes, newest claim first
   */
  listSandboxes: {
    query?: {
      /**
       * Of this pool alone.
       */
      poolName?: string;
      /**
       * In this phase alone.
       */
      phase?: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
      /**
       * Of this namespace. Admins alone.
       */
      namespace?: string;
      /**
       * Of this team. Admins alone.
       */
      team?: string;
      /**
       * Of this user. Admins alone.
       */
      user?: string;
      /**
       * Of every tenant. Admins alone.
       */
      all?: boolean;
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: SandboxPage;
  };
  /**
   * Get a sandbox
   */
  getSandbox: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: SandboxDetailEnvelope;
  };
  /**
   * Give a sandbox back, which ends it
   */
  deleteSandbox: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: SandboxDeletion;
  };
  /**
   * Run the readiness probes of a sandbox
   */
  isReady: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: IsReadyAnswer;
  };
  /**
   * Run a command and wait for its end
   */
  execInSandbox: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    body: ExecInSandboxBody;
    answer: ExecResult;
  };
  /**
   * Make a single-use token for the terminal
   */
  createExecToken: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: ExecToken;
  };
  /**
   * Set how long the sandbox may sit idle
   */
  setIdleTimeout: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    body?: SetIdleTimeoutBody;
    answer: IdleTimeoutEnvelope;
  };
  /**
   * Read what a sandbox printed, or follow it
   */
  getSandboxLogs: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * The container's name. There is one, so it need not be said.
       */
      container?: string;
      /**
       * The last so many lines.
       */
      tailLines?: number;
      /**
       * Nothing that was printed longer ago.
       */
      sinceSeconds?: number;
      /**
       * Each line with the time at which it was printed before it.
       */
      timestamps?: boolean;
      /**
       * Go on with what it prints, as Server-Sent Events, until the sandbox has ended.
       */
      follow?: boolean;
    };
    answer: SandboxLogs;
  };
  /**
   * List what happened to a sandbox
   */
  listSandboxEvents: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: EventList;
  };
  /**
   * Follow what happens to one's sandboxes and pools
   */
  followEvents: {
    query?: {
      /**
       * Of every tenant. Admins alone.
       */
      all?: boolean;
    };
    answer: Event;
  };
  /**
   * Create a pool from a template
   */
  createPool: {
    body: CreatePoolBody;
    answer: PoolEnvelope;
  };
  /**
   * List pools, newest first
   */
  listPools: {
    query?: {
      /**
       * Of every tenant. Admins alone.
       */
      all?: boolean;
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: PoolPage;
  };
  /**
   * Get a pool
   */
  getPool: {
    params: {
      /**
       * A pool of the caller's.
       */
      name: string;
    };
    answer: PoolEnvelope;
  };
  /**
   * Change a pool; what is not named stays
   */
  updatePool: {
    params: {
      /**
       * A pool of the caller's.
       */
      name: string;
    };
    body?: UpdatePoolBody;
    answer: PoolEnvelope;
  };
  /**
   * Delete a pool; running sandboxes stay unless forced
   */
  deletePool: {
    params: {
      /**
       * A pool of the caller's.
       */
      name: string;
    };
    query?: {
      /**
       * End its running sandboxes too. `?force` alone is true.
       */
      force?: boolean;
    };
    answer: PoolDeletion;
  };
  /**
   * Create a key for the caller
   */
  createApiKey: {
    body?: CreateApiKeyBody;
    answer: IssuedApiKey;
  };
  /**
   * List the caller's keys, newest first
   */
  listApiKeys: {
    query?: {
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: ApiKeyPage;
  };
  /**
   * Revoke a key of the caller's
   */
  deleteApiKey: {
    params: {
      /**
       * Of a key of the caller's.
       */
      keyId: string;
    };
    answer: ApiKeyDeletion;
  };
  /**
   * Create a key for any team and user
   */
  createApiKeyForTenant: {
    body: CreateApiKeyForTenantBody;
    answer: IssuedApiKey;
  };
  /**
   * List the keys of all teams and users, newest first
   */
  listAllApiKeys: {
    query?: {
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: ApiKeyPage;
  };
  /**
   * Revoke anyone's key, by its name
   */
  deleteApiKeyByName: {
    params: {
      /**
       * `{namespace}/{shortName}`, its `/` as `%2F`; or the short name alone.
       */
      name: string;
    };
    answer: ApiKeyDeletion;
  };
  /**
   * The same, with the name as two segments
   */
  deleteApiKeyByFullName: {
    params: {
      namespace: string;
      shortName: string;
    };
    answer: ApiKeyDeletion;
  };
  /**
   * Which replica leads which shard
   */
  getShards: {
    answer: ShardReport;
  };
}
export interface Health {
  status: 'ok';
}
export interface ReadinessReport {
  status: 'ready' | 'not ready';
  /**
   * What keeps it from being ready; empty when it is.
   */
  problems: string[];
  /**
   * What works, but gives less than it should: see security.
   */
  warnings: string[];
  /**
   * The level in force: `cgroup-v2`, `cgroup-v1`, `prlimit` or `none`.
   */
  isolation: string;
}
export interface ClaimSandboxBody {
  /**
   * The pool to claim from. Without it the answer is 400 with the message `poolName is required`.
   */
  poolName: string;
  /**
   * End it after so long without activity; `"0"`, `0` and null are never. Left out: what the template says.
   */
  idleTimeout?: string | 0 | null;
}
export interface SandboxEnvelope {
  sandbox: Sandbox;
}
/**
 * Status: `Starting` its process comes up · `Idle` unclaimed, ready or for the moment not · `Running` claimed ·
 * `Stopping` it ends · `Failed` an unclaimed one that died, until it is cleared away · `Completed` finished, in lists alone.
 */
export interface Sandbox {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
}
export interface SandboxPage {
  items: SandboxRecord[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
/**
 * A sandbox in a list, with its times and its end. End reasons: `deleted` by its owner or an admin · `force-deleted` with its
 * pool · `idle-timeout` · `max-lifetime` · `exited` its main process ended · `lost` it was found dead, its exit code unknown ·
 * `start-failed`, `start-timeout`, `retired`: unclaimed ones.
 */
export interface SandboxRecord {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
  /**
   * When its main process started.
   */
  startedAt?: string;
  /**
   * When it ended.
   */
  terminatedAt?: string;
  /**
   * When what it held was given back and its record closed.
   */
  recycledAt?: string;
  /**
   * Whole seconds from its claim to its end, or to now.
   */
  durationSeconds?: number;
  /**
   * Its limit, as the template has it.
   */
  cpu: string;
  /**
   * Its limit, as the template has it.
   */
  memory: string;
  /**
   * Container to image.
   */
  containerImages: {
    [k: string]: string;
  };
  /**
   * Why it ended: see SandboxRecord.
   */
  endReason?: string;
}
export interface SandboxDetailEnvelope {
  sandbox: SandboxWithEndpoints;
}
export interface SandboxWithEndpoints {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
  /**
   * Endpoint name to URL. Always empty: ports are not published yet.
   */
  endpoints: {
    [k: string]: string;
  };
}
export interface SandboxDeletion {
  sandboxId: string;
  namespace: string;
  poolName: string;
  podName: string;
  status: 'Stopping';
}
export interface IsReadyAnswer {
  sandboxId: string;
  ready: boolean;
  endpoints: {
    [k: string]: {
      ready: boolean;
      message: string;
    };
  };
}
export interface ExecInSandboxBody {
  /**
   * A text is run by `/bin/sh -c`, an array as it stands, without a shell.
   */
  command: string | string[];
  /**
   * Then its whole process group is killed, and the answer is 200 with `timedOut`.
   */
  timeoutSeconds?: number;
  /**
   * An absolute path; else the template's `workingDir`.
   */
  cwd?: string;
  /**
   * At most 128 variables, over those of the template. Names hold letters, digits and underscores.
   */
  env?: {
    [k: string]: string;
  };
  /**
   * Its standard input, then end of file. Left out: nothing.
   */
  stdin?: string;
  /**
   * The container's name. There is one, so it need not be said.
   */
  container?: string;
}
export interface ExecResult {
  /**
   * At most 1 MiB. Bytes that are not UTF-8 become U+FFFD.
   */
  stdout: string;
  /**
   * The same.
   */
  stderr: string;
  /**
   * The command's own, also when it is not 0. 128 + n after signal n, 127 not found, 126 not executable, 125 it could not be run at all, 124 timed out.
   */
  exitCode: number;
  timedOut: boolean;
  /**
   * Some output went beyond 1 MiB and was dropped.
   */
  truncated: boolean;
  durationMs: number;
}
export interface ExecToken {
  /**
   * A secret: whoever has it has a shell.
   */
  token: string;
}
export interface SetIdleTimeoutBody {
  /**
   * End it after so long without activity; `"0"`, `0` and null are never.
   */
  idleTimeout?: string | 0 | null;
  /**
   * The same in seconds; 0 and null are never.
   */
  idleTimeoutSeconds?: number | null;
}
export interface IdleTimeoutEnvelope {
  sandbox: SandboxWithIdleTimeout;
}
export interface SandboxWithIdleTimeout {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
  /**
   * `0s` is never.
   */
  idleTimeout: string;
  /**
   * When it ends if nothing happens. Absent where it never does.
   */
  idleExpiresAt?: string;
}
export interface SandboxLogs {
  sandboxId: string;
  podName: string;
  container: string;
  /**
   * Output and errors of the main process, in the order in which they were written. Bytes that are not UTF-8 show as U+FFFD. At most 1 MiB, the end of it.
   */
  logs: string;
  /**
   * Older lines were asked for than are here: more than `tailLines`, more than 1 MiB, or no longer kept.
   */
  truncated: boolean;
}
export interface EventList {
  /**
   * The last 50, the oldest first.
   */
  items: Event[];
  /**
   * How many these are.
   */
  total: number;
}
export interface Event {
  time: string;
  type: 'Normal' | 'Warning';
  /**
   * One word for programs: `Created`, `Started`, `Unhealthy`, `Ready`, `Claimed`, `IdleTimeoutChanged`, `Killing`, `Failed`, `Completed`; of a pool `BackOff`, `Recovered`. There may be more some day.
   */
  reason: string;
  /**
   * For people.
   */
  message: string;
  /**
   * Left out where it happened to a pool.
   */
  sandboxId?: string;
  poolName: string;
  namespace: string;
  team: string;
  user: string;
  /**
   * With `Killing`, `Failed` and `Completed`: as in the list of sandboxes.
   */
  endReason?: string;
  /**
   * With `Completed`, of the main process, where it ended by itself and the code is known.
   */
  exitCode?: number;
}
export interface CreatePoolBody {
  /**
   * A DNS label.
   */
  name: string;
  /**
   * Refused: not there yet.
   */
  template?: {
    [k: string]: unknown;
  };
  /**
   * Refused: not there yet.
   */
  overrides?: {
    [k: string]: unknown;
  };
  /**
   * One of the daemon's templates.
   */
  templateName: string;
  /**
   * See what replicas counts.
   */
  replicas?: number;
  /**
   * At most 64. Data, never interpreted.
   */
  labels?: {
    [k: string]: string;
  };
  /**
   * At most 64. Data, never interpreted.
   */
  annotations?: {
    [k: string]: string;
  };
}
export interface PoolEnvelope {
  template: Pool;
}
/**
 * The counts are exact. Phase: `Pending` not yet full since the daemon started · `Ready` all there · `Scaling` instances start
 * or go · `Degraded` some are unavailable, or starts keep failing while something is usable · `Failed` starts keep failing and
 * nothing is usable · `Deleting`. `Updating` is not used yet.
 */
export interface Pool {
  name: string;
  namespace: string;
  /**
   * Of each instance.
   */
  cpu: string;
  /**
   * Of each instance.
   */
  memory: string;
  /**
   * The owner's.
   */
  team: string;
  /**
   * The owner's.
   */
  user: string;
  /**
   * The template's version when the pool was made.
   */
  templateVersion: string;
  createdAt: string;
  labels: {
    [k: string]: string;
  };
  /**
   * `sandpool.dev/template-name` is the template's name.
   */
  annotations: {
    [k: string]: string;
  };
  spec: {
    /**
     * How many there should be.
     */
    replicas: number;
  };
  status: {
    phase: 'Pending' | 'Ready' | 'Scaling' | 'Updating' | 'Degraded' | 'Deleting' | 'Failed';
    /**
     * Ready to claim.
     */
    idleReplicas: number;
    /**
     * Were ready, and are not now.
     */
    unavailableIdleReplicas: number;
    /**
     * Claimed.
     */
    runningReplicas: number;
    startingReplicas: number;
    stoppingReplicas: number;
    /**
     * Unclaimed ones that died, until they are cleared away.
     */
    failedReplicas: number;
  };
}
export interface PoolPage {
  items: Pool[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
export interface UpdatePoolBody {
  replicas?: number;
  /**
   * Refused: not there yet.
   */
  template?: {
    [k: string]: unknown;
  };
  /**
   * Refused: not there yet.
   */
  overrides?: {
    [k: string]: unknown;
  };
}
export interface PoolDeletion {
  name: string;
  namespace: string;
  status: 'Deleting';
}
export interface CreateApiKeyBody {
  /**
   * A DNS label, unique in the namespace; else one is made up.
   */
  name?: string;
  description?: string;
  /**
   * At most a year ahead (`keys.maxLifetime`). Left out: 90 days (`keys.defaultLifetime`).
   */
  expiresAt?: string;
  /**
   * Admins alone, as in `POST /admin/api-keys`.
   */
  team?: string;
  /**
   * The same.
   */
  user?: string;
  /**
   * The same.
   */
  role?: 'user' | 'admin';
}
export interface IssuedApiKey {
  /**
   * The key itself: a secret.
   */
  apiKey: string;
  /**
   * Its middle part. Logs show it.
   */
  keyId: string;
  /**
   * `{namespace}/{name}`.
   */
  name: string;
  user: string;
  team: string;
  role: 'user' | 'admin';
  description: string;
  issuedAt: string;
  expiresAt: string;
}
export interface ApiKeyPage {
  items: ApiKey[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
export interface ApiKey {
  /**
   * Its middle part. Logs show it.
   */
  keyId: string;
  /**
   * `{namespace}/{name}`.
   */
  name: string;
  user: string;
  team: string;
  role: 'user' | 'admin';
  description: string;
  issuedAt: string;
  expiresAt: string;
}
export interface ApiKeyDeletion {
  keyId: string;
  status: 'deleted';
}
export interface CreateApiKeyForTenantBody {
  /**
   * A DNS label, unique in the namespace; else one is made up.
   */
  name?: string;
  description?: string;
  /**
   * As in `POST /api-keys`.
   */
  expiresAt?: string;
  /**
   * A DNS label. The namespace follows from it (`namespacePattern`).
   */
  team: string;
  /**
   * A DNS label.
   */
  user: string;
  /**
   * Left out: `"user"`.
   */
  role?: 'user' | 'admin';
}
export interface ShardReport {
  /**
   * Who answers.
   */
  replica: string;
  /**
   * The live ones, by name.
   */
  replicas: string[];
  /**
   * All of them.
   */
  shards: {
    /**
     * Its number, from 0.
     */
    shard: number;
    /**
     * Whether the answering replica leads it: it holds the lease, and its mirror has caught up.
     */
    leading: boolean;
    /**
     * Who holds its lease, as the answering replica last heard; left out while nobody does.
     */
    replica?: string;
  }[];
}

export const OPERATIONS = {
  getHealth: { method: 'GET', path: '/healthz' },
  getReadiness: { method: 'GET', path: '/readyz' },
  claimSandbox: { method: 'POST', path: '/sandboxes' },
  listSandboxes: { method: 'GET', path: '/sandboxes' },
  getSandbox: { method: 'GET', path: '/sandboxes/{sandboxId}' },
  deleteSandbox: { method: 'DELETE', path: '/sandboxes/{sandboxId}' },
  isReady: { method: 'GET', path: '/sandboxes/{sandboxId}/is_ready' },
  execInSandbox: { method: 'POST', path: '/sandboxes/{sandboxId}/exec' },
  createExecToken: { method: 'POST', path: '/sandboxes/{sandboxId}/exec-token' },
  setIdleTimeout: { method: 'PUT', path: '/sandboxes/{sandboxId}/idle-timeout' },
  getSandboxLogs: { method: 'GET', path: '/sandboxes/{sandboxId}/logs' },
  listSandboxEvents: { method: 'GET', path: '/sandboxes/{sandboxId}/events' },
  followEvents: { method: 'GET', path: '/events' },
  createPool: { method: 'POST', path: '/sandboxpools' },
  listPools: { method: 'GET', path: '/sandboxpools' },
  getPool: { method: 'GET', path: '/sandboxpools/{name}' },
  updatePool: { method: 'PUT', path: '/sandboxpools/{name}' },
  deletePool: { method: 'DELETE', path: '/sandboxpools/{name}' },
  createApiKey: { method: 'POST', path: '/api-keys' },
  listApiKeys: { method: 'GET', path: '/api-keys' },
  deleteApiKey: { method: 'DELETE', path: '/api-keys/{keyId}' },
  createApiKeyForTenant: { method: 'POST', path: '/admin/api-keys' },
  listAllApiKeys: { method: 'GET', path: '/admin/api-keys' },
  deleteApiKeyByName: { method: 'DELETE', path: '/admin/api-keys/{name}' },
  deleteApiKeyByFullName: { method: 'DELETE', path: '/admin/api-keys/{namespace}/{shortName}' },
  getShards: { method: 'GET', path: '/debug/shards' },
} as const;

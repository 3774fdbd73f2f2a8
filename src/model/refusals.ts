/**
 * Every expected "no", with its exact wording. `code` is an errorCode of the API;
 * src/http/reply/error-table.ts determines the HTTP status. A real fault is an ordinary Error.
 */
export type RefusalCode =
  | 'INVALID_ARGUMENT'
  | 'API_KEY_REQUIRED'
  | 'INVALID_API_KEY'
  | 'INVALID_TOKEN'
  | 'ADMIN_REQUIRED'
  | 'FORBIDDEN'
  | 'APPROVAL_REQUIRED'
  | 'APPROVAL_DENIED'
  | 'CONSOLE_SESSION_REQUIRED'
  | 'POOL_NOT_OWNED'
  | 'POOL_NOT_FOUND'
  | 'SANDBOX_NOT_FOUND'
  | 'PROCESS_NOT_FOUND'
  | 'SANDBOX_TEMPLATE_NOT_FOUND'
  | 'API_KEY_NOT_FOUND'
  | 'APPROVAL_NOT_FOUND'
  | 'NOT_FOUND'
  | 'ENV_NOT_FOUND'
  | 'ENV_MEMBER_NOT_FOUND'
  | 'AUTOSCALING_GROUP_NOT_FOUND'
  | 'CLUSTER_NOT_FOUND'
  | 'LOGS_GONE'
  | 'FILE_NOT_FOUND'
  | 'ENDPOINT_NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'CONFLICT'
  | 'SANDBOX_NOT_RUNNING'
  | 'PROCESS_ENDED'
  | 'INPUT_CLOSED'
  | 'ALREADY_GLOBAL'
  | 'ALREADY_DECIDED'
  | 'TEMPLATE_IN_USE'
  | 'ENV_HAS_RUNNING_SANDBOXES'
  | 'ENV_SYNC_PARTIAL'
  | 'CLUSTER_UNAVAILABLE'
  | 'POOL_EXHAUSTED'
  | 'QUOTA_EXCEEDED'
  | 'TOO_MANY_TERMINALS'
  | 'TOO_MANY_COMMANDS'
  | 'TOO_MANY_PROCESSES'
  | 'TOO_MANY_STREAMS'
  | 'TOO_MANY_WAITING'
  | 'TOO_MANY_CONNECTIONS'
  | 'ENDPOINT_UNREACHABLE'
  | 'ENDPOINT_TIMEOUT'
  | 'UNAVAILABLE'
  | 'FEATURE_DISABLED'
  | 'METHOD_NOT_ALLOWED'
  | 'PRECONDITION_FAILED'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'IDEMPOTENCY_IN_FLIGHT'
  | 'RATE_LIMITED'
  | 'PAYLOAD_TOO_LARGE'
  | 'RANGE_NOT_SATISFIABLE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'INTERNAL'
  | 'NO_SPACE';

export interface RefusalOptions {
  readonly detail?: Readonly<Record<string, unknown>>;
  /** Whole seconds, for the Retry-After header. */
  readonly retryAfter?: number;
}

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfter: number | undefined;

  constructor(code: RefusalCode, message: string, options: RefusalOptions = {}) {
    // Skips the stack trace, which costs more than the rest of the refusal.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'Refusal';
    this.code = code;
    this.detail = options.detail;
    this.retryAfter = options.retryAfter;
  }
}

export interface PoolChoice {
  readonly name: string;
  readonly namespace: string;
  readonly idle: number;
  readonly running: number;
  readonly starting: number;
}

export interface TemplateChoice {
  readonly name: string;
  readonly description: string;
  readonly syncSource?: string;
}

export const invalidArgument = (
  field: string,
  problem: string,
  allowed?: readonly string[],
): Refusal =>
  new Refusal('INVALID_ARGUMENT', `${field}: ${problem}`, {
    detail: { field, ...(allowed ? { allowed } : {}) },
  });

export const poolNameRequired = (): Refusal =>
  new Refusal('INVALID_ARGUMENT', 'poolName is required');

export const apiKeyRequired = (): Refusal =>
  new Refusal('API_KEY_REQUIRED', 'API key required for this operation');

export const invalidApiKey = (): Refusal => new Refusal('INVALID_API_KEY', 'invalid API key');

/** One wording for every fault: unknown, used, expired, for another sandbox. */
export const invalidToken = (): Refusal => new Refusal('INVALID_TOKEN', 'invalid or expired token');

export const adminRequired = (): Refusal =>
  new Refusal('ADMIN_REQUIRED', 'this operation needs a key with the admin role');

export const notOwnersChange = (what: 'pool' | 'env'): Refusal =>
  new Refusal(
    'FORBIDDEN',
    `the ${what} is shared with your team; only its owner and admins can change it`,
  );

export const forbidden = (message: string): Refusal => new Refusal('FORBIDDEN', message);

export const poolNotOwned = (): Refusal =>
  new Refusal('POOL_NOT_OWNED', 'pool belongs to another team/user; create in a pool of your own');

const LONGEST_POOL_NAME = 512; // a name in a path has any length

export const poolNotFound = (poolName: string, choices?: readonly PoolChoice[]): Refusal =>
  new Refusal('POOL_NOT_FOUND', 'pool not found', {
    detail: {
      poolName: poolName.slice(0, LONGEST_POOL_NAME),
      ...(choices && { availablePools: choices }),
      hint:
        choices && choices.length > 0
          ? 'claim from one of availablePools, or create a pool with POST /v1/sandboxpools'
          : 'create a pool of your own with POST /v1/sandboxpools',
    },
  });

export const hasNetwork = (field: string): Refusal =>
  invalidArgument(
    field,
    "the pool's sandboxes use their host's network (network: host), which cannot be " +
      'disabled for a single sandbox; name a pool with network: none',
  );

export const apiKeyAlreadyExists = (): Refusal =>
  new Refusal('ALREADY_EXISTS', 'API key already exists', {
    detail: { hint: 'names are unique in a team; choose another' },
  });

export const poolBeingDeleted = (): Refusal => new Refusal('CONFLICT', 'pool is being deleted');

export const poolAlreadyExists = (): Refusal =>
  new Refusal('ALREADY_EXISTS', 'pool already exists');

export const poolOfEnv = (env: string, member: string): Refusal =>
  new Refusal('CONFLICT', `the pool is a member of env ${env}; change it there`, {
    detail: { env, member },
  });

export const envNotFound = (): Refusal => new Refusal('ENV_NOT_FOUND', 'env not found');

export const envAlreadyExists = (): Refusal => new Refusal('ALREADY_EXISTS', 'env already exists');

export const envBeingDeleted = (): Refusal => new Refusal('CONFLICT', 'env is being deleted');

export const memberNotFound = (): Refusal =>
  new Refusal('ENV_MEMBER_NOT_FOUND', 'env member not found');

export const groupNotFound = (): Refusal =>
  new Refusal('AUTOSCALING_GROUP_NOT_FOUND', 'autoscaling group not found');

export const envHasRunningSandboxes = (running: number): Refusal =>
  new Refusal(
    'ENV_HAS_RUNNING_SANDBOXES',
    'sandboxes of the env are running; delete them first, or use force',
    { detail: { running } },
  );

export interface FailedMember {
  readonly member: string;
  readonly clusterID: string;
  readonly error: string;
}

/** Completed changes stay, and a repeated sync finishes the rest. */
export const envSyncPartial = (
  synced: readonly string[],
  failed: readonly FailedMember[],
): Refusal =>
  new Refusal(
    'ENV_SYNC_PARTIAL',
    `the env is synced in part; failed: ${failed.map(({ member }) => member).join(', ')}`,
    { detail: { synced, failed } },
  );

export const apiKeyNotFound = (): Refusal => new Refusal('API_KEY_NOT_FOUND', 'API key not found');

export const apiKeyAlreadyGlobal = (): Refusal =>
  new Refusal('ALREADY_GLOBAL', 'the API key is already global');

export const noWorkerConnected = (): Refusal =>
  new Refusal('CLUSTER_UNAVAILABLE', 'no worker cluster is connected', { retryAfter: 5 });

export const templateNotFound = (
  availableTemplates: readonly TemplateChoice[],
  field = 'templateName',
): Refusal =>
  new Refusal('SANDBOX_TEMPLATE_NOT_FOUND', 'sandbox template not found', {
    detail: { availableTemplates, hint: `name one of availableTemplates as ${field}` },
  });

/** Lists no alternatives. */
export const noSuchTemplate = (): Refusal =>
  new Refusal('SANDBOX_TEMPLATE_NOT_FOUND', 'sandbox template not found');

export const templateAlreadyExists = (): Refusal =>
  new Refusal('ALREADY_EXISTS', 'sandbox template already exists');

export const templateInUse = (
  pools: readonly { readonly name: string; readonly namespace: string }[],
): Refusal =>
  new Refusal('TEMPLATE_IN_USE', 'pools are made from this sandbox template; delete them first', {
    detail: { pools },
  });

export const sandboxUuidFailed = (): Refusal =>
  new Refusal('INTERNAL', 'failed to generate sandbox UUID');

export const sandboxNotFound = (): Refusal =>
  new Refusal('SANDBOX_NOT_FOUND', 'sandbox not found or already terminated');

export const sandboxNotRunning = (status: string): Refusal =>
  new Refusal('SANDBOX_NOT_RUNNING', `the sandbox is ${status}, not Running`);

/** Others changed the record, or the pepper has changed since the claim. */
export const claimEnvUnreadable = (): Refusal =>
  new Refusal(
    'UNAVAILABLE',
    "the variables of the sandbox's claim cannot be decrypted, so no command is run; delete " +
      'the sandbox and claim another',
  );

/** Another user's, an unknown and a forgotten process get the same answer. */
export const processNotFound = (): Refusal =>
  new Refusal('PROCESS_NOT_FOUND', 'the sandbox has no such process, or it is no longer known');

export const processEnded = (): Refusal =>
  new Refusal('PROCESS_ENDED', 'the process has ended; its output can still be read');

export const inputClosed = (why: string): Refusal => new Refusal('INPUT_CLOSED', why);

export const inputNotTaken = (): Refusal =>
  new Refusal(
    'CONFLICT',
    'the process does not read its input, and too much input is waiting; none of this input ' +
      'was accepted',
  );

export const processesNotProvided = (why: string): Refusal =>
  new Refusal('FEATURE_DISABLED', why, { detail: { field: 'processes' } });

/** The sandbox runs again on request, or by itself if its claim says so. */
export const sandboxPaused = (): Refusal =>
  new Refusal('SANDBOX_NOT_RUNNING', 'the sandbox is paused', {
    detail: {
      hint:
        'resume it with PUT /v1/sandboxes/{sandboxId}/state {"state":"running"}, or claim ' +
        'with "autoResume": true, so that such a call resumes it',
    },
  });

/** `container` is absent if the request named none. */
export const containerNotRunning = (container: string | undefined): Refusal =>
  new Refusal(
    'SANDBOX_NOT_RUNNING',
    `${
      container === undefined ? 'a container' : `the container "${container}"`
    } of the sandbox has ended, and does not restart`,
  );

export const logsGone = (hint: string): Refusal =>
  new Refusal('LOGS_GONE', 'the logs of this sandbox are no longer stored', { detail: { hint } });

export const endpointNotFound = (endpoints: readonly string[]): Refusal =>
  new Refusal('ENDPOINT_NOT_FOUND', 'the sandbox has no such endpoint', { detail: { endpoints } });

export const endpointUnreachable = (why: string): Refusal =>
  new Refusal('ENDPOINT_UNREACHABLE', `the endpoint does not answer: ${why}`);

export const endpointTimeout = (why: string): Refusal =>
  new Refusal('ENDPOINT_TIMEOUT', `the endpoint does not answer: ${why}`);

/** The outcome is unknown, or a dependency is unreachable. A retry after the delay is safe. */
export const unavailable = (why: string, retryAfter = 1): Refusal =>
  new Refusal('UNAVAILABLE', why, { retryAfter });

export const featureDisabled = (field: string, feature: string): Refusal =>
  new Refusal('FEATURE_DISABLED', `${field}: this deployment has no ${feature}`, {
    detail: { field },
  });

export const clusterNotFound = (): Refusal => new Refusal('CLUSTER_NOT_FOUND', 'cluster not found');

/** Nothing was changed. */
export const preconditionFailed = (): Refusal =>
  new Refusal(
    'PRECONDITION_FAILED',
    'it has changed since the version that If-Match names; get it again',
  );

export const idempotencyKeyReused = (): Refusal =>
  new Refusal(
    'IDEMPOTENCY_KEY_REUSED',
    'this Idempotency-Key was used with another body; use a new key',
  );

export const idempotencyInFlight = (): Refusal =>
  new Refusal(
    'IDEMPOTENCY_IN_FLIGHT',
    'the first request with this Idempotency-Key is still in progress; repeat this request ' +
      'shortly',
    { retryAfter: 1 },
  );

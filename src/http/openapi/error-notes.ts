import { z } from 'zod';
import {
  adminRequired,
  apiKeyAlreadyGlobal,
  apiKeyNotFound,
  apiKeyRequired,
  endpointNotFound,
  endpointTimeout,
  endpointUnreachable,
  envHasRunningSandboxes,
  envNotFound,
  envSyncPartial,
  featureDisabled,
  groupNotFound,
  idempotencyInFlight,
  idempotencyKeyReused,
  invalidApiKey,
  invalidArgument,
  invalidToken,
  logsGone,
  memberNotFound,
  noWorkerConnected,
  poolAlreadyExists,
  poolBeingDeleted,
  poolNotOwned,
  poolToClaimNotFound,
  Refusal,
  sandboxNotFound,
  sandboxNotRunning,
  templateInUse,
  templateNotFound,
  unavailable,
} from '../../model/refusals.ts';
import {
  sandboxQuotaExceeded,
  tooManyCommands,
  tooManyConnections,
  tooManyStreams,
  tooManyTerminals,
  tooManyWaiting,
} from '../../model/limit-refusals.ts';
import { noIdleInstance } from '../../model/pools/exhausted-pool.ts';
import {
  edgeAnswer,
  errorAnswer,
  type EdgeCode,
  type ErrorBody,
  type ErrorCode,
} from '../router/error-table.ts';

export interface ErrorNote {
  /** When it is answered. */
  readonly when: string;
  /** The form of `detail`; without one there is no detail. */
  readonly detail?: z.ZodType;
  /** A body as it is answered. */
  readonly example: ErrorBody;
}

const said = (refusal: Refusal): ErrorBody => errorAnswer(refusal, EXAMPLE_REQUEST_ID).body;
const saidAtTheEdge = (code: EdgeCode, message: string): ErrorBody =>
  edgeAnswer(code, message).body;
const EXAMPLE_REQUEST_ID = '9a3c1d52-5a0e-4d0b-8a6e-1f2f3a4b5c6d';

const fieldDetail = z
  .object({ field: z.string(), allowed: z.array(z.string()).optional() })
  .optional();
const poolChoice = z.object({
  name: z.string(),
  namespace: z.string(),
  idle: z.int(),
  running: z.int(),
  starting: z.int(),
});
const templateChoice = z.object({
  name: z.string(),
  description: z.string(),
  syncSource: z.string().optional(),
});
const exhaustedDetail = z.object({
  idle: z.int(),
  running: z.int(),
  starting: z.int(),
  stopping: z.int(),
  failed: z.int(),
  problem: z.string().optional(),
  problemSince: z.string().optional(),
  hint: z.string(),
});

/** What each errorCode says, for the document and the API page. */
export const ERROR_NOTES: Readonly<Record<ErrorCode, ErrorNote>> = {
  INVALID_ARGUMENT: {
    when: 'The request is malformed, or a field is. `detail.field`, and `detail.allowed` where there is a choice. A claim without `poolName`: `poolName is required`, without detail.',
    detail: fieldDetail,
    example: said(invalidArgument('replicas', 'must be an integer')),
  },
  API_KEY_REQUIRED: {
    when: 'There is no key. `API key required for this operation`.',
    detail: z.null(),
    example: said(apiKeyRequired()),
  },
  INVALID_API_KEY: {
    when: 'The key is malformed, unknown, wrong or expired; one answer for all. `invalid API key`.',
    example: said(invalidApiKey()),
  },
  INVALID_TOKEN: {
    when: "The terminal's token is unknown, used, too old, or another sandbox's; one answer for all.",
    example: said(invalidToken()),
  },
  ADMIN_REQUIRED: {
    when: "An operation under `/admin`, or a field that is an admin's (`detail.field`), without an admin's key.",
    detail: z.object({ field: z.string() }).optional(),
    example: said(adminRequired()),
  },
  FORBIDDEN: {
    when: 'A terminal for a web page of another origin.',
    example: said(new Refusal('FORBIDDEN', 'terminals are not open to pages of this origin')),
  },
  POOL_NOT_OWNED: {
    when: "A claim from another's pool. `pool belongs to another team/user; create in a pool of your own`.",
    example: said(poolNotOwned()),
  },
  NOT_FOUND: {
    when: 'There is nothing at this path.',
    example: said(new Refusal('NOT_FOUND', 'there is nothing at this path')),
  },
  POOL_NOT_FOUND: {
    when: "No such pool of the caller's. `pool not found`; a claim adds `detail.availablePools` (`name`, `namespace`, `idle`, `running`, `starting`; at most 50 of the caller's) and `detail.hint`.",
    detail: z.object({ availablePools: z.array(poolChoice), hint: z.string() }).optional(),
    example: said(
      poolToClaimNotFound([
        { name: 'default', namespace: 'default', idle: 3, running: 1, starting: 0 },
      ]),
    ),
  },
  SANDBOX_NOT_FOUND: {
    when: "Unknown, finished, or another's. `sandbox not found or already terminated`.",
    example: said(sandboxNotFound()),
  },
  SANDBOX_TEMPLATE_NOT_FOUND: {
    when: '`sandbox template not found`; a pool made of an unknown one adds `detail.availableTemplates` (`name`, `description`, `syncSource` where it has one; at most 50) and `detail.hint`.',
    detail: z.object({ availableTemplates: z.array(templateChoice), hint: z.string() }).optional(),
    example: said(
      templateNotFound([
        { name: 'default', description: 'A shell with the tools of this machine.' },
      ]),
    ),
  },
  API_KEY_NOT_FOUND: {
    when: "No such key of the caller's; under `/admin` of nobody's.",
    example: said(apiKeyNotFound()),
  },
  CLUSTER_NOT_FOUND: {
    when: "A name, or the terminal's address, names another cluster.",
    example: said(new Refusal('CLUSTER_NOT_FOUND', 'cluster not found')),
  },
  LOGS_GONE: {
    when: 'What the sandbox printed was removed to make room (`logs.totalBytes`).',
    detail: z.object({ hint: z.string() }),
    example: said(
      logsGone(
        'what this sandbox printed was removed to make room for newer logs; follow those of ' +
          'another while it runs, with GET /v1/sandboxes/{sandboxId}/logs?follow=true',
      ),
    ),
  },
  METHOD_NOT_ALLOWED: {
    when: 'The path has other methods; `Allow` names them.',
    example: said(new Refusal('METHOD_NOT_ALLOWED', 'PATCH is not possible here')),
  },
  REQUEST_TIMEOUT: {
    when: 'The request did not arrive in time.',
    example: saidAtTheEdge('REQUEST_TIMEOUT', 'the request did not arrive in time'),
  },
  ENV_NOT_FOUND: {
    when: "No such env of the caller's. `env not found`.",
    example: said(envNotFound()),
  },
  ENV_MEMBER_NOT_FOUND: { when: 'The env has no such member.', example: said(memberNotFound()) },
  AUTOSCALING_GROUP_NOT_FOUND: {
    when: 'The env has no such autoscaling group.',
    example: said(groupNotFound()),
  },
  ENV_HAS_RUNNING_SANDBOXES: {
    when: 'Sandboxes of the env run: `detail.running` is how many. With `force` they are ended.',
    detail: z.object({ running: z.int() }),
    example: said(envHasRunningSandboxes(2)),
  },
  ENV_SYNC_PARTIAL: {
    when: 'Some members could not be synced. `error` names them; `detail.synced` stay so, `detail.failed` says why (`member`, `clusterID`, `error`). A repeated sync does the rest.',
    detail: z.object({
      synced: z.array(z.string()),
      failed: z.array(z.object({ member: z.string(), clusterID: z.string(), error: z.string() })),
    }),
    example: said(
      envSyncPartial(
        ['small'],
        [
          {
            member: 'large',
            clusterID: 'local',
            error: 'instanceType: there is no instance type large',
          },
        ],
      ),
    ),
  },
  TEMPLATE_IN_USE: {
    when: 'Pools are made from the template: `detail.pools` (`name`, `namespace`; at most 50).',
    detail: z.object({ pools: z.array(z.object({ name: z.string(), namespace: z.string() })) }),
    example: said(templateInUse([{ name: 'default', namespace: 'default' }])),
  },
  ALREADY_EXISTS: {
    when: 'A pool, a key or a template of that name exists.',
    example: said(poolAlreadyExists()),
    detail: z.object({ hint: z.string() }).optional(),
  },
  CONFLICT: {
    when: 'The pool, or the env, is being deleted; the pool is a member of an env (`detail.env`), where it is to be changed; or there are as many keys, envs, members, groups, or users with limits of their own, as there may be.',
    detail: z.object({ env: z.string(), member: z.string() }).optional(),
    example: said(poolBeingDeleted()),
  },
  ALREADY_GLOBAL: {
    when: 'The key counts on all worker clusters already.',
    example: said(apiKeyAlreadyGlobal()),
  },
  IDEMPOTENCY_IN_FLIGHT: {
    when: 'The first request with this `Idempotency-Key` has no answer yet.',
    example: said(idempotencyInFlight()),
  },
  PRECONDITION_FAILED: {
    when: 'It has changed since the version that `If-Match` names. Nothing was changed.',
    example: said(
      new Refusal('PRECONDITION_FAILED', 'it has changed since the version that If-Match names'),
    ),
  },
  IDEMPOTENCY_KEY_REUSED: {
    when: 'The `Idempotency-Key` was used with another body.',
    example: said(idempotencyKeyReused()),
  },
  RATE_LIMITED: {
    when: 'The answers that you have under way take as much memory as one tenant may: read them, or come again; or so many tokens for terminals wait as may: 64 of a sandbox, 512 of the tenant; or this key sends more requests than it may; or too many of your requests that take long wait for their turn; or more than 20 rejected keys a minute came from this address, and good keys go on.',
    example: said(new Refusal('RATE_LIMITED', 'too many rejected keys from this address')),
  },
  SANDBOX_NOT_RUNNING: {
    when: 'The sandbox is in another state, which the message names; or that container of it has ended.',
    example: said(sandboxNotRunning('Stopping')),
  },
  PAYLOAD_TOO_LARGE: {
    when: 'The body is larger than 1 MiB.',
    example: said(new Refusal('PAYLOAD_TOO_LARGE', 'the body is larger than 1048576 bytes')),
  },
  UNSUPPORTED_MEDIA_TYPE: {
    when: 'The body is not `application/json` in UTF-8, or is compressed.',
    example: said(
      new Refusal('UNSUPPORTED_MEDIA_TYPE', 'the body must be application/json in UTF-8'),
    ),
  },
  POOL_EXHAUSTED: {
    when: 'The pool has no idle instance. `no idle pods available in pool`; `detail` has `idle`, `running`, `starting`, `stopping`, `failed` and `hint`; and `problem` where instances do not start: why, as whoever could not start them says; `problemSince`: since when, where that is known.',
    detail: exhaustedDetail,
    example: said(
      noIdleInstance(
        { name: 'default' },
        { idle: 0, running: 4, starting: 0, stopping: 0, retiring: 0, failed: 0 },
      ),
    ),
  },
  QUOTA_EXCEEDED: {
    when: 'The user has as many sandboxes, pools or replicas as they may, or their pools ask for as much cpu or memory (`GET /quotas`). `scale failed`; `detail.errCode`, for a claim `detail.message` and `detail.retryAfter`, and `detail.resource` where it is `cpu` or `memory`.',
    detail: z.object({
      errCode: z.literal('QUOTA_EXCEEDED'),
      message: z.string().optional(),
      retryAfter: z.int().optional(),
      resource: z.enum(['cpu', 'memory']).optional(),
    }),
    example: said(sandboxQuotaExceeded(1_000)),
  },
  TOO_MANY_TERMINALS: {
    when: 'The sandbox has 16 terminals, or the tenant as many as it may have.',
    example: said(tooManyTerminals('the sandbox has', 16)),
  },
  TOO_MANY_COMMANDS: {
    when: 'The sandbox has 64 commands under way.',
    example: said(tooManyCommands('the sandbox has', 64)),
  },
  TOO_MANY_STREAMS: {
    when: 'The sandbox has 16 followers of its logs, or the caller has 64, or 16 of events.',
    example: said(tooManyStreams('the sandbox has', 16)),
  },
  TOO_MANY_WAITING: {
    when: "So many claims wait as may: 256 for one pool, 512 of the tenant's.",
    example: said(tooManyWaiting('for this pool', 256)),
  },
  TOO_MANY_CONNECTIONS: {
    when: 'The sandbox has 256 requests to its endpoints under way, or the tenant 1,024.',
    example: said(tooManyConnections('the sandbox has', 256)),
  },
  ENDPOINT_NOT_FOUND: {
    when: 'The sandbox has no endpoint of this name; `detail.endpoints` names those that it has.',
    detail: z.object({ endpoints: z.array(z.string()) }),
    example: said(endpointNotFound(['web'])),
  },
  ENDPOINT_UNREACHABLE: {
    when: 'Nothing of the sandbox takes the connection, or what comes back is no HTTP.',
    example: said(endpointUnreachable('port 8000: nothing listens on it')),
  },
  ENDPOINT_TIMEOUT: {
    when: 'The endpoint takes no connection in 5 s, gives no answer in 300 s, or takes nothing of the request for 60 s.',
    example: said(endpointTimeout('it takes too long')),
  },
  REQUEST_HEADERS_TOO_LARGE: {
    when: 'The headers are larger than 16 KiB.',
    example: saidAtTheEdge('REQUEST_HEADERS_TOO_LARGE', 'the headers are larger than 16384 bytes'),
  },
  FEATURE_DISABLED: {
    when: 'The request needs what this deployment does not have, as `GET /feature-gates` says: an instance type, a volume, the audit. `detail.field`.',
    detail: z.object({ field: z.string() }),
    example: said(featureDisabled('instanceType', 'instance types')),
  },
  INTERNAL: {
    when: "A fault of the daemon's. `detail.requestId` finds it in the log.",
    detail: z.object({ requestId: z.string() }).optional(),
    example: errorAnswer(new Error('unexpected'), EXAMPLE_REQUEST_ID).body,
  },
  CLUSTER_UNAVAILABLE: {
    when: 'No worker cluster is connected.',
    example: said(noWorkerConnected()),
  },
  UNAVAILABLE: {
    when: 'It could not be done in time, or a part that it needs is away, or the daemon stops. Where the message says that it is not known whether it took effect, look before you repeat it.',
    example: said(unavailable('the daemon is stopping')),
  },
};

import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import { fileNotFound, noSpace, rangeNotSatisfiable } from '../../model/file-refusals.ts';
import { readFileSync } from 'node:fs';
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
  inputClosed,
  invalidApiKey,
  invalidArgument,
  invalidToken,
  logsGone,
  memberNotFound,
  poolAlreadyExists,
  poolBeingDeleted,
  poolNotOwned,
  poolNotFound,
  processEnded,
  processNotFound,
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
  tooManyProcesses,
  tooManyStreams,
  tooManyTerminals,
  tooManyWaiting,
} from '../../model/limit-refusals.ts';
import { approvalDetails } from './approval-notes.ts';
import { EXHAUSTED_ACTIONS, noIdleInstance } from '../../model/pools/exhausted-pool.ts';
import {
  edgeAnswer,
  errorAnswer,
  type EdgeCode,
  type ErrorBody,
  type ErrorCode,
} from '../reply/error-table.ts';

export interface ErrorNote {
  readonly when: string;
  readonly detail?: z.ZodType;
  readonly example: ErrorBody;
}

const said = (refusal: Refusal): ErrorBody => errorAnswer(refusal, EXAMPLE_REQUEST_ID).body;
const saidAtTheEdge = (code: EdgeCode, message: string): ErrorBody =>
  edgeAnswer(code, message).body;
const EXAMPLE_REQUEST_ID = '9a3c1d52-5a0e-4d0b-8a6e-1f2f3a4b5c6d';

/** The failed file, and the fate of the claim. */
const ofClaimFile = {
  field: z.string().optional(),
  hint: z.string().optional(),
  sandboxId: z.string().optional(),
};
const fieldDetail = z
  .object({ ...ofClaimFile, field: z.string(), allowed: z.array(z.string()).optional() })
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
const ofPool = { poolName: z.string(), hint: z.string() };
const exhaustedDetail = z.object({
  ...ofPool,
  idle: z.int(),
  running: z.int(),
  starting: z.int(),
  stopping: z.int(),
  failed: z.int(),
  problem: z.string().optional(),
  problemSince: z.string().optional(),
  action: z.object({
    type: z.enum(EXHAUSTED_ACTIONS),
    poolName: z.string(),
    env: z.string().optional(),
    member: z.string().optional(),
    owner: z.string().optional(),
  }),
});

const DETAILS: Readonly<Record<ErrorCode, Omit<ErrorNote, 'when'>>> = {
  INVALID_ARGUMENT: {
    detail: fieldDetail,
    example: said(invalidArgument('replicas', 'must be an integer')),
  },
  API_KEY_REQUIRED: {
    detail: z.null(),
    example: said(apiKeyRequired()),
  },
  INVALID_API_KEY: {
    example: said(invalidApiKey()),
  },
  INVALID_TOKEN: {
    example: said(invalidToken()),
  },
  ADMIN_REQUIRED: {
    detail: z.object({ field: z.string() }).optional(),
    example: said(adminRequired()),
  },
  FORBIDDEN: {
    detail: z.object(ofClaimFile).optional(),
    example: said(new Refusal('FORBIDDEN', 'terminals are not open to pages of this origin')),
  },
  ...approvalDetails(said),
  POOL_NOT_OWNED: {
    example: said(poolNotOwned()),
  },
  NOT_FOUND: {
    example: said(new Refusal('NOT_FOUND', 'there is nothing at this path')),
  },
  POOL_NOT_FOUND: {
    detail: z.object({ ...ofPool, availablePools: z.array(poolChoice).optional() }).optional(),
    example: said(
      poolNotFound('lab', [
        { name: 'default', namespace: 'default', idle: 3, running: 1, starting: 0 },
      ]),
    ),
  },
  SANDBOX_NOT_FOUND: {
    example: said(sandboxNotFound()),
  },
  SANDBOX_TEMPLATE_NOT_FOUND: {
    detail: z.object({ availableTemplates: z.array(templateChoice), hint: z.string() }).optional(),
    example: said(
      templateNotFound([
        { name: 'default', description: 'A shell with the tools of this machine.' },
      ]),
    ),
  },
  API_KEY_NOT_FOUND: {
    example: said(apiKeyNotFound()),
  },
  CLUSTER_NOT_FOUND: {
    example: said(new Refusal('CLUSTER_NOT_FOUND', 'cluster not found')),
  },
  LOGS_GONE: {
    detail: z.object({ hint: z.string() }),
    example: said(
      logsGone(
        'the output of this sandbox was deleted to make room for newer logs; follow the ' +
          'logs of another sandbox while it runs, with GET ' +
          '/v1/sandboxes/{sandboxId}/logs?follow=true',
      ),
    ),
  },
  FILE_NOT_FOUND: {
    detail: z.object(ofClaimFile).optional(),
    example: said(fileNotFound()),
  },
  METHOD_NOT_ALLOWED: {
    example: said(new Refusal('METHOD_NOT_ALLOWED', 'PATCH is not possible here')),
  },
  REQUEST_TIMEOUT: {
    example: saidAtTheEdge('REQUEST_TIMEOUT', 'the request did not arrive in time'),
  },
  ENV_NOT_FOUND: {
    example: said(envNotFound()),
  },
  ENV_MEMBER_NOT_FOUND: { example: said(memberNotFound()) },
  AUTOSCALING_GROUP_NOT_FOUND: {
    example: said(groupNotFound()),
  },
  ENV_HAS_RUNNING_SANDBOXES: {
    detail: z.object({ running: z.int() }),
    example: said(envHasRunningSandboxes(2)),
  },
  ENV_SYNC_PARTIAL: {
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
    detail: z.object({ pools: z.array(z.object({ name: z.string(), namespace: z.string() })) }),
    example: said(templateInUse([{ name: 'default', namespace: 'default' }])),
  },
  ALREADY_EXISTS: {
    example: said(poolAlreadyExists()),
    detail: z.object({ hint: z.string() }).optional(),
  },
  CONFLICT: {
    detail: z
      .object({
        env: z.string().optional(),
        member: z.string().optional(),
        approvalId: z.string().optional(),
        outcome: z.literal('over').optional(),
        ...ofClaimFile,
      })
      .optional(),
    example: said(poolBeingDeleted()),
  },
  ALREADY_GLOBAL: {
    example: said(apiKeyAlreadyGlobal()),
  },
  IDEMPOTENCY_IN_FLIGHT: {
    example: said(idempotencyInFlight()),
  },
  PRECONDITION_FAILED: {
    example: said(
      new Refusal('PRECONDITION_FAILED', 'it has changed since the version that If-Match names'),
    ),
  },
  IDEMPOTENCY_KEY_REUSED: {
    example: said(idempotencyKeyReused()),
  },
  RATE_LIMITED: {
    example: said(new Refusal('RATE_LIMITED', 'too many rejected keys from this address')),
  },
  SANDBOX_NOT_RUNNING: {
    detail: z.object({ hint: z.string() }).optional(),
    example: said(sandboxNotRunning('Stopping')),
  },
  PROCESS_NOT_FOUND: { example: said(processNotFound()) },
  PROCESS_ENDED: { example: said(processEnded()) },
  INPUT_CLOSED: {
    example: said(inputClosed('the process takes no input, or no more')),
  },
  TOO_MANY_PROCESSES: {
    example: said(tooManyProcesses('the sandbox has 64 processes, which is the maximum')),
  },
  PAYLOAD_TOO_LARGE: {
    example: said(new Refusal('PAYLOAD_TOO_LARGE', 'the body is larger than 1048576 bytes')),
  },
  RANGE_NOT_SATISFIABLE: {
    detail: z.object({ size: z.int() }),
    example: said(rangeNotSatisfiable(1_024)),
  },
  NO_SPACE: {
    detail: z.object({ ...ofClaimFile, hint: z.string() }),
    example: said(noSpace()),
  },
  UNSUPPORTED_MEDIA_TYPE: {
    example: said(
      new Refusal('UNSUPPORTED_MEDIA_TYPE', 'the body must be application/json in UTF-8'),
    ),
  },
  POOL_EXHAUSTED: {
    detail: exhaustedDetail,
    example: said(
      noIdleInstance(
        { name: 'default' },
        { idle: 0, running: 4, starting: 0, stopping: 0, retiring: 0, failed: 0 },
      ),
    ),
  },
  QUOTA_EXCEEDED: {
    detail: z.object({
      errCode: z.literal('QUOTA_EXCEEDED'),
      message: z.string().optional(),
      retryAfter: z.int().optional(),
      resource: z.enum(['cpu', 'memory']).optional(),
    }),
    example: said(sandboxQuotaExceeded(1_000)),
  },
  TOO_MANY_TERMINALS: {
    example: said(tooManyTerminals('the sandbox has', 16)),
  },
  TOO_MANY_COMMANDS: {
    example: said(tooManyCommands('the sandbox has', 64)),
  },
  TOO_MANY_STREAMS: {
    example: said(tooManyStreams('the sandbox has', 16)),
  },
  TOO_MANY_WAITING: {
    example: said(tooManyWaiting('for this pool', 256)),
  },
  TOO_MANY_CONNECTIONS: {
    example: said(tooManyConnections('the sandbox has', 256)),
  },
  ENDPOINT_NOT_FOUND: {
    detail: z.object({ endpoints: z.array(z.string()) }),
    example: said(endpointNotFound(['web'])),
  },
  ENDPOINT_UNREACHABLE: {
    example: said(endpointUnreachable('port 8000: nothing listens on it')),
  },
  ENDPOINT_TIMEOUT: {
    example: said(endpointTimeout('it takes too long')),
  },
  REQUEST_HEADERS_TOO_LARGE: {
    example: saidAtTheEdge('REQUEST_HEADERS_TOO_LARGE', 'the headers are larger than 16384 bytes'),
  },
  FEATURE_DISABLED: {
    detail: z.object(ofClaimFile),
    example: said(featureDisabled('instanceType', 'instance types')),
  },
  INTERNAL: {
    detail: z.object({ requestId: z.string() }).optional(),
    example: errorAnswer(new Error('unexpected'), EXAMPLE_REQUEST_ID).body,
  },
  CLUSTER_UNAVAILABLE: {
    detail: z.object({ clusterID: z.string() }).optional(),
    example: said(clusterUnavailable('w1', 'is not connected; try again')),
  },
  UNAVAILABLE: {
    detail: z.object(ofClaimFile).optional(),
    example: said(unavailable('the daemon is stopping')),
  },
};

const WHEN = JSON.parse(
  readFileSync(new URL('error-notes.json', import.meta.url), 'utf8'),
) as Readonly<Record<ErrorCode, string>>;

/** Description, detail and example of each errorCode, for the OpenAPI document and the API page. */
export const ERROR_NOTES = Object.fromEntries(
  Object.entries(DETAILS).map(([code, details]) => [
    code,
    { ...details, when: WHEN[code as ErrorCode] },
  ]),
) as Readonly<Record<ErrorCode, ErrorNote>>;

import { NotDone } from '../../contracts/not-done.ts';
import { RecordExists } from '../../contracts/record-store.ts';
import {
  ContainerGone,
  DefinitionRefused,
  InstanceGone,
  LeaseLost,
  LogsGone,
  NoPlace,
  NotJoinable,
  OutcomeUnknown,
  PortUnreachable,
  RecordConflict,
} from '../../contracts/sandbox-driver.ts';
import { Refusal, type RefusalCode, unavailable } from '../../model/refusals.ts';

/** They occur before a request is parsed. */
export type EdgeCode = 'REQUEST_TIMEOUT' | 'REQUEST_HEADERS_TOO_LARGE';
export type ErrorCode = RefusalCode | EdgeCode;

const STATUS: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 400,
  API_KEY_REQUIRED: 401,
  INVALID_API_KEY: 401,
  INVALID_TOKEN: 401,
  ADMIN_REQUIRED: 403,
  FORBIDDEN: 403,
  APPROVAL_REQUIRED: 403,
  APPROVAL_DENIED: 403,
  CONSOLE_SESSION_REQUIRED: 403,
  POOL_NOT_OWNED: 403,
  NOT_FOUND: 404,
  POOL_NOT_FOUND: 404,
  SANDBOX_NOT_FOUND: 404,
  PROCESS_NOT_FOUND: 404,
  SANDBOX_TEMPLATE_NOT_FOUND: 404,
  API_KEY_NOT_FOUND: 404,
  APPROVAL_NOT_FOUND: 404,
  ENV_NOT_FOUND: 404,
  ENV_MEMBER_NOT_FOUND: 404,
  AUTOSCALING_GROUP_NOT_FOUND: 404,
  CLUSTER_NOT_FOUND: 404,
  LOGS_GONE: 404,
  FILE_NOT_FOUND: 404,
  ENDPOINT_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  ALREADY_EXISTS: 409,
  CONFLICT: 409,
  ALREADY_GLOBAL: 409,
  ALREADY_DECIDED: 409,
  TEMPLATE_IN_USE: 409,
  ENV_HAS_RUNNING_SANDBOXES: 409,
  SANDBOX_NOT_RUNNING: 409,
  PROCESS_ENDED: 409,
  INPUT_CLOSED: 409,
  IDEMPOTENCY_IN_FLIGHT: 409,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RANGE_NOT_SATISFIABLE: 416,
  IDEMPOTENCY_KEY_REUSED: 422,
  POOL_EXHAUSTED: 429,
  QUOTA_EXCEEDED: 429,
  TOO_MANY_TERMINALS: 429,
  TOO_MANY_COMMANDS: 429,
  TOO_MANY_PROCESSES: 429,
  TOO_MANY_STREAMS: 429,
  TOO_MANY_WAITING: 429,
  RATE_LIMITED: 429,
  TOO_MANY_CONNECTIONS: 429,
  REQUEST_HEADERS_TOO_LARGE: 431,
  INTERNAL: 500,
  ENV_SYNC_PARTIAL: 500,
  FEATURE_DISABLED: 501,
  ENDPOINT_UNREACHABLE: 502,
  UNAVAILABLE: 503,
  CLUSTER_UNAVAILABLE: 503,
  ENDPOINT_TIMEOUT: 504,
  NO_SPACE: 507,
};

/** Body of every error (docs/reference/api). */
export interface ErrorBody {
  readonly error: string;
  readonly errorCode: ErrorCode;
  readonly detail?: Readonly<Record<string, unknown>> | null;
}

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
}

export const statusOf = (code: ErrorCode): number => STATUS[code];

export const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(STATUS, text);

/** Undefined for other errors. */
type FailureRow = (error: unknown) => Refusal | undefined;

const row =
  <T extends Error>(
    failure: abstract new (...args: never) => T,
    told: (error: T) => string,
  ): FailureRow =>
  (error) =>
    error instanceof failure ? unavailable(told(error)) : undefined;

/**
 * Errors of drivers, stores and coordination that no operation handled. None is a fault of the
 * daemon; most mean that the client may retry.
 */
const FAILURES: readonly FailureRow[] = [
  row(
    OutcomeUnknown,
    () => 'the outcome is unknown; check the result before you repeat the request',
  ),
  (error) =>
    error instanceof NotDone ? unavailable(error.told, error.retryAfterSeconds) : undefined,
  row(NotJoinable, ({ message }) => message),
  row(RecordConflict, () => 'another request changed it; try again'),
  row(RecordExists, () => 'another request created it; try again'),
  row(LeaseLost, () => 'another replica is responsible for this now; try again'),
  row(NoPlace, ({ message }) => message),
  row(ContainerGone, ({ message }) => message),
  row(InstanceGone, () => 'the sandbox has ended'),
  row(LogsGone, ({ message }) => message),
  row(PortUnreachable, ({ message }) => message),
  row(DefinitionRefused, ({ message }) => message),
];

/** Undefined if the error is a fault of the daemon. */
export const refusalOf = (error: unknown): Refusal | undefined => {
  if (error instanceof Refusal) return error;
  for (const meaning of FAILURES) {
    const refusal = meaning(error);
    if (refusal) return refusal;
  }
  return undefined;
};

/** A fault shows only the request id. */
export const errorAnswer = (error: unknown, requestId: string): ErrorAnswer => {
  const refusal = refusalOf(error);
  if (!refusal)
    return answer('INTERNAL', {
      error: 'internal error',
      errorCode: 'INTERNAL',
      detail: { requestId },
    });
  const { code, message, detail, retryAfter } = refusal;
  // Other errors omit an absent detail.
  const shown = code === 'API_KEY_REQUIRED' ? null : detail;
  const told = answer(
    code,
    { error: message, errorCode: code, ...(shown === undefined ? {} : { detail: shown }) },
    retryAfter,
  );
  if (code !== 'RANGE_NOT_SATISFIABLE') return told;
  return { ...told, headers: { 'Content-Range': `bytes */${Number(detail?.['size'] ?? 0)}` } };
};

export const edgeAnswer = (code: EdgeCode, message: string): ErrorAnswer =>
  answer(code, { error: message, errorCode: code });

const answer = (code: ErrorCode, body: ErrorBody, retryAfter = 1): ErrorAnswer => {
  const status = STATUS[code];
  return { status, headers: headersOf(code, status, retryAfter), body };
};

const headersOf = (
  code: ErrorCode,
  status: number,
  retryAfter: number,
): Readonly<Record<string, string>> => {
  if (status === 429 || status === 503 || code === 'IDEMPOTENCY_IN_FLIGHT')
    return { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) };
  if (code === 'API_KEY_REQUIRED' || code === 'INVALID_API_KEY')
    return { 'WWW-Authenticate': 'ApiKeyAuth header="SERVICE-API-KEY", Bearer' };
  return {};
};

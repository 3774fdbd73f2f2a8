import { Code, ConnectError } from '@connectrpc/connect';
import { InstanceGone } from '../../../../contracts/sandbox-driver.ts';
import { refusalOf, statusOf } from '../../../reply/error-table.ts';
import { ClientGone } from '../../../corridor/request-body.ts';
import type { EndReason } from '../../../../model/sandbox.ts';
import type { RefusalCode } from '../../../../model/refusals.ts';

/** Answered with 502 if the head is not sent yet. */
export const isGone = (error: unknown): boolean => {
  if (error instanceof InstanceGone) return true;
  const code = refusalOf(error)?.code;
  return code === 'SANDBOX_NOT_FOUND' || code === 'SANDBOX_NOT_RUNNING';
};

const CODES: Readonly<Partial<Record<RefusalCode, Code>>> = {
  ALREADY_EXISTS: Code.AlreadyExists,
  PROCESS_ENDED: Code.NotFound,
  NO_SPACE: Code.ResourceExhausted,
};

const BY_STATUS: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.FailedPrecondition,
  412: Code.FailedPrecondition,
  413: Code.InvalidArgument,
  415: Code.InvalidArgument,
  429: Code.ResourceExhausted,
  501: Code.Unimplemented,
  503: Code.Unavailable,
};

/** Undefined for a fault of the daemon. */
export const rpcErrorOf = (error: unknown): ConnectError | undefined => {
  if (error instanceof ConnectError) return error;
  if (isGone(error)) return new ConnectError('the sandbox is gone', Code.Unavailable);
  if (error instanceof ClientGone || (error instanceof Error && error.name === 'AbortError'))
    return new ConnectError('the call was interrupted; connect again', Code.Unavailable);
  const refusal = refusalOf(error);
  if (!refusal) return undefined;
  const code = CODES[refusal.code] ?? BY_STATUS[statusOf(refusal.code)] ?? Code.FailedPrecondition;
  return new ConnectError(refusal.message, code);
};

/** SDKs read this error as the end of the sandbox's lifetime. */
export const sandboxEnded = (reason: EndReason | undefined): ConnectError =>
  new ConnectError(
    reason === 'oom-killed' ? 'the sandbox ran out of memory, and ended' : 'the sandbox ended',
    Code.Unavailable,
  );

export const notFound = (message: string): ConnectError => new ConnectError(message, Code.NotFound);

export const badArgument = (message: string): ConnectError =>
  new ConnectError(message, Code.InvalidArgument);

export const overTime = (): ConnectError =>
  new ConnectError('the operation timed out', Code.DeadlineExceeded);

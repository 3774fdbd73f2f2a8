import type { ParameterizedContext } from 'koa';
import type { OnStep } from '../../contracts/tracing.ts';
import type { ConsoleSession } from '../../model/console-session.ts';
import type { Caller } from '../../model/tenant.ts';

/** Facts that the middleware and the corridor collect about a request. */
export interface RequestState {
  requestId: string;
  /** Id of the client's trace, or of a new trace. */
  traceId?: string;
  /** Reports the duration of a step; absent if steps are not recorded. */
  step?: OnStep;
  /** The row's path template. */
  route?: string;
  /** The row's operationId. */
  operation?: string;
  /** The validated body. */
  asked?: unknown;
  /** The body of a successful answer, as an object or JSON. */
  answered?: unknown;
  caller?: Caller;
  session?: ConsoleSession;
  /** Set if an approval rule applies. */
  isHeld?: true;
  /** The approval of the request, pending or used. */
  approvalId?: string;
  errorCode?: string;
}

export type Context = ParameterizedContext<RequestState>;

import type { ParameterizedContext } from 'koa';
import type { OnStep } from '../../contracts/tracing.ts';
import type { ConsoleSession } from '../../model/console-session.ts';
import type { Caller } from '../../model/tenant.ts';

/** Facts that the middleware and the corridor collect about a request. */
export interface RequestState {
  requestId: string;
  traceId?: string;
  /** Absent if steps are not recorded. */
  step?: OnStep;
  route?: string;
  operation?: string;
  asked?: unknown;
  /** An object or JSON. */
  answered?: unknown;
  caller?: Caller;
  session?: ConsoleSession;
  /** An approval rule applies. */
  isHeld?: true;
  /** Pending or used. */
  approvalId?: string;
  errorCode?: string;
}

export type Context = ParameterizedContext<RequestState>;

import type { ParameterizedContext } from 'koa';
import type { OnStep } from '../../contracts/tracing.ts';
import type { ConsoleSession } from '../../model/console-session.ts';
import type { Caller } from '../../model/tenant.ts';

/** Describes what the middleware learns of a request on its way. */
export interface RequestState {
  requestId: string;
  /** Id of the client's trace, or of one that began here. */
  traceId?: string;
  /** Tells what a part of the request took; where it is recorded. */
  step?: OnStep;
  /** The row's path, with its `{…}`. */
  route?: string;
  /** The row's operationId. */
  operation?: string;
  /** The body, once it was checked. */
  asked?: unknown;
  /** The body of a good answer, an object or its JSON. */
  answered?: unknown;
  caller?: Caller;
  session?: ConsoleSession;
  /** A rule of the policy held it. */
  isHeld?: true;
  /** The approval that it waits for, or had. */
  approvalId?: string;
  errorCode?: string;
}

export type Context = ParameterizedContext<RequestState>;

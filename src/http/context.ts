import type { ParameterizedContext } from 'koa';
import type { Caller } from '../model/tenant.ts';

/** What the middleware learns of a request on its way. */
export interface RequestState {
  requestId: string;
  /** The row's path, with its `{…}`. */
  route?: string;
  caller?: Caller;
  errorCode?: string;
}

export type Context = ParameterizedContext<RequestState>;

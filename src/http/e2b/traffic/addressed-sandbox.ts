import type { InstanceId } from '../../../model/identifiers.ts';
import type { Caller } from '../../../model/tenant.ts';

/** The sandbox that a request is for, and who sends it. */
export interface AddressedSandbox {
  readonly sandboxId: InstanceId;
  /** The caller of the API key to which the request's token was issued. */
  readonly caller: Caller;
  readonly requestId: string;
  /** Aborts when the client leaves, or that key is worth nothing any more. */
  readonly signal: AbortSignal;
  /** `signature`: nothing but the one file may be read or written that the link was made for. */
  readonly by: 'token' | 'signature';
}

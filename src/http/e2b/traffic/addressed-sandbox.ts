import type { InstanceId } from '../../../model/identifiers.ts';
import type { Caller } from '../../../model/tenant.ts';

export interface AddressedSandbox {
  readonly sandboxId: InstanceId;
  readonly caller: Caller;
  readonly requestId: string;
  /** Aborts when the client leaves or its key is revoked. */
  readonly signal: AbortSignal;
  /** `signature` permits only the link's file. */
  readonly by: 'token' | 'signature';
}

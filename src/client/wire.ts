import type * as api from './generated/api.ts';
import type { OperationInput } from './operation-request.ts';

/** What goes over the wire, by the names that a caller of the client uses. Timestamps are ISO 8601 in UTC; what is absent was left out. */

export type { ApiKey, ApiKeyDeletion, Event, EventList, ExecResult, IssuedApiKey, Pool, PoolDeletion, SandboxDeletion, SandboxLogs } from './generated/api.ts';

/** A sandbox as any of the answers shows it. */
export type Sandbox = api.Sandbox & Partial<Omit<api.SandboxRecord & api.SandboxWithEndpoints & api.SandboxWithIdleTimeout, keyof api.Sandbox>>;

export type Readiness = api.ReadinessReport;
export type ClaimRequest = OperationInput<'claimSandbox'>['body'];
export type ExecRequest = OperationInput<'execInSandbox'>['body'];
export type CreatePoolRequest = OperationInput<'createPool'>['body'];
export type PoolChange = NonNullable<OperationInput<'updatePool'>['body']>;
export type ApiKeyRequest = NonNullable<OperationInput<'createApiKey'>['body']>;
export type AdminApiKeyRequest = OperationInput<'createApiKeyForTenant'>['body'];
export type SandboxFilter = NonNullable<OperationInput<'listSandboxes'>['query']>;
export type PoolFilter = NonNullable<OperationInput<'listPools'>['query']>;
export type PageRequest = NonNullable<OperationInput<'listApiKeys'>['query']>;

export type LogsQuery = Omit<NonNullable<OperationInput<'getSandboxLogs'>['query']>, 'follow'>;

/** `end`: the sandbox has ended, and this was all. `reset`: something before the next line is no longer kept. */
export type LogEvent =
  | { readonly type: 'line'; readonly id: string; readonly line: string; readonly timestamp?: string; readonly partial?: boolean }
  | { readonly type: 'reset' }
  | { readonly type: 'end' };

/** `reset`: events before the next one are no longer known; look at the lists anew. */
export type FollowedEvent =
  | { readonly type: 'event'; readonly id: string; readonly event: api.Event }
  | { readonly type: 'reset' };

export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
}

import type * as api from './generated/api.ts';
import type { OperationInput } from './operation-request.ts';

/**
 * Name what goes over the wire, by the names that a caller of the client uses. Timestamps are ISO
 * 8601 in UTC; what is absent was left out.
 */
export type {
  ActorReport,
  ActorTransition,
  ApiKey,
  ApiKeyDeletion,
  ApiKeyPromotion,
  Approval,
  ApprovalInFull,
  ApiKeysDeletion,
  AuditPage,
  AuditRecord,
  AutoscalingGroup,
  AutoscalingGroupDeletion,
  AutoscalingGroupEnvelope,
  AutoscalingGroupList,
  Cluster,
  ClusterRoute,
  ClusterList,
  Env,
  EnvCondition,
  EnvDeletion,
  EnvEditable,
  EnvEnvelope,
  Event,
  EventList,
  ExecResult,
  FeatureGates,
  InstanceType,
  InstanceTypeList,
  IssuedApiKey,
  LogLevelReport,
  Managers,
  MachineReport,
  MemberEnvelope,
  MemberList,
  NarrowEnv,
  ObservedMember,
  Pool,
  PoolDeletion,
  PoolSyncPreview,
  QueuesReport,
  Quota,
  QuotaList,
  ScalingDecision,
  ScalingDecisionList,
  SandboxDeletion,
  SandboxLogs,
  SandboxStatistics,
  ShardReport,
  Template,
  TemplateCluster,
  TemplateClusterList,
  TemplateDeletion,
  Volume,
  VolumeList,
} from './generated/api.ts';

/** A sandbox as any of the answers shows it. */
export type Sandbox = api.Sandbox &
  Partial<
    Omit<
      api.SandboxRecord & api.SandboxWithEndpoints & api.SandboxWithIdleTimeout,
      keyof api.Sandbox
    >
  >;

export type ActorKind = api.ActorReport['kind'];
export type Readiness = api.ReadinessReport;
export type ClaimRequest = OperationInput<'claimSandbox'>['body'];
export type ExecRequest = OperationInput<'execInSandbox'>['body'];
export type CreatePoolRequest = OperationInput<'createPool'>['body'];
export type PoolChange = NonNullable<OperationInput<'updatePool'>['body']>;
export type CreateEnvRequest = OperationInput<'createEnv'>['body'];
export type EnvReplacement = OperationInput<'replaceEnv'>['body'];
export type EnvChange = NonNullable<OperationInput<'patchEnv'>['body']>;
export type AddMemberRequest = NonNullable<OperationInput<'addMember'>['body']>;
export type MemberChange = NonNullable<OperationInput<'updateMember'>['body']>;
export type AutoscalingGroupChange = NonNullable<OperationInput<'updateGroup'>['body']>;
export type TemplateRequest = OperationInput<'createTemplate'>['body'];
export type TemplateChange = NonNullable<OperationInput<'updateTemplate'>['body']>;
export type ApiKeyRequest = NonNullable<OperationInput<'createApiKey'>['body']>;
export type AdminApiKeyRequest = OperationInput<'createApiKeyForTenant'>['body'];
export type QuotaChange = NonNullable<OperationInput<'setQuotasOf'>['body']>;
export type SandboxFilter = NonNullable<OperationInput<'listSandboxes'>['query']>;
export type EnvFilter = NonNullable<OperationInput<'listEnvs'>['query']>;
export type OfCluster = NonNullable<OperationInput<'getTemplate'>['query']>;
export type TemplateFilter = NonNullable<OperationInput<'listTemplates'>['query']>;
export type PoolFilter = NonNullable<OperationInput<'listPools'>['query']>;
export type Cascade = NonNullable<OperationInput<'deleteApiKey'>['query']>;
export type DeletedKeysQuery = NonNullable<OperationInput<'deleteApiKeysOf'>['query']>;
export type PageRequest = NonNullable<OperationInput<'listApiKeys'>['query']>;

export type AuditQuery = NonNullable<OperationInput<'listAudit'>['query']>;
export type ManagersRequest = OperationInput<'setManagers'>['body'];
export type LogLevelRequest = OperationInput<'setLogLevel'>['body'];
export type LogLevel = LogLevelRequest['level'];

export type LogsQuery = Omit<NonNullable<OperationInput<'getSandboxLogs'>['query']>, 'follow'>;

/**
 * `end`: the sandbox has ended, and this was all. `reset`: something before the next line is no
 * longer kept.
 */
export type LogEvent =
  | {
      readonly type: 'line';
      readonly id: string;
      readonly line: string;
      readonly timestamp?: string;
      readonly partial?: boolean;
    }
  | { readonly type: 'reset' }
  | { readonly type: 'end' };

/**
 * `open`: nothing that happens from now on is missed. `begin`: where the stream begins. `reset`:
 * events before the next one, of that cluster where one is named, are no longer known; look at the
 * lists anew. `cluster`: a manager does not hear of what happens there, or does again.
 */
export type FollowedEvent =
  | { readonly type: 'open' }
  | { readonly type: 'begin'; readonly id: string }
  | { readonly type: 'event'; readonly id: string; readonly event: api.Event }
  | { readonly type: 'cluster'; readonly clusterID: string; readonly incomplete: boolean }
  | { readonly type: 'reset'; readonly clusterID?: string };

/**
 * `open`: nothing that the actor does from now on is missed. `seen-by`: whose view follows.
 * `reset`: moves before the next one are not known any more. `end`: the actor is no more.
 */
export type ActorNews =
  | { readonly type: 'open' | 'reset' | 'end' }
  | { readonly type: 'seen-by'; readonly replica: string; readonly note?: string }
  | { readonly type: 'transition'; readonly transition: api.ActorTransition };

export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
}

import type { OnStep } from '../contracts/tracing.ts';
import type {
  ExecOutcome,
  ExecRequest,
  LogBatch,
  LogLine,
  PortConnection,
  Terminal,
} from '../contracts/sandbox-driver.ts';
import type { Volume } from '../contracts/volumes.ts';
import type { ApiKeyRecord } from '../model/api-key.ts';
import type { AutoscalingGroup, GroupChange } from '../model/envs/autoscaling-group.ts';
import type {
  EnvMode,
  EnvOverrides,
  EnvRecord,
  MemberConfig,
  TemplateRef,
} from '../model/envs/env.ts';
import type { EventBatch, EventRecord } from '../model/event.ts';
import type { IfMatch } from '../model/if-match.ts';
import type { InstanceType } from '../model/templates/instance-type.ts';
import type { Patch } from '../lib/merge-patch.ts';
import type { PoolPhase, UpdateStrategy } from '../model/pools/pool.ts';
import type { PoolSource, RegistryCredentials } from '../model/pools/pool-source.ts';
import type { RequestFingerprint } from '../model/request-fingerprint.ts';
import type { SandboxStatus } from '../model/sandbox.ts';
import type { CompletedDecision } from '../model/envs/scaling-decision.ts';
import type { POOL_SIZINGS, SandboxTemplateDocument } from '../model/templates/template.ts';
import type { Access, Caller, Role } from '../model/tenant.ts';
import type { AuditList, AuditRequest } from './debug/audit-view.ts';
import type { LogLevels } from './debug/log-levels.ts';
import type { DebugOperations } from './debug/debug-operations.ts';
import type { IdempotentRequest } from './claims/idempotent-request.ts';
import type { QuotaChange } from './pools/quota-limits.ts';
import type {
  ClusterView,
  EnvView,
  FeatureGates,
  MemberView,
  Page,
  PageRequest,
  PoolSyncView,
  PoolView,
  QuotaView,
  SandboxDetailView,
  SandboxStatistics,
  SandboxView,
  TemplateView,
} from './views.ts';

/**
 * Every use case, one a file beside this one; the HTTP layer calls nothing else. Each rejects with
 * a Refusal for an expected "no".
 */
export interface Operations extends DebugOperations {
  /**
   * The caller behind a `SERVICE-API-KEY` header's value. Refuses with API_KEY_REQUIRED or
   * INVALID_API_KEY.
   */
  readonly authenticate: (key: string | undefined) => Caller;
  /** The same for one that was refused: another replica may have made it a moment ago. */
  readonly authenticateAfresh: (key: string | undefined) => Promise<Caller>;
  readonly createApiKey: (caller: Caller, request: ApiKeyRequest) => Promise<IssuedApiKey>;
  /** For `/admin`: the key of any team and user; they default to the caller's. */
  readonly createApiKeyForTenant: (
    caller: Caller,
    request: AdminApiKeyRequest,
  ) => Promise<IssuedApiKey>;
  readonly listApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  readonly listAllApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  /**
   * Durable, and the key worth nothing, when it resolves; with `cascade` all that it made too.
   * Returns how many those are.
   */
  readonly deleteApiKey: (caller: Caller, keyId: string, cascade: boolean) => Promise<number>;
  /** The same for `/admin`. */
  readonly deleteApiKeyByName: (
    caller: Caller,
    name: ApiKeyName,
    cascade: boolean,
  ) => Promise<{ readonly keyId: string; readonly revoked: number }>;
  /**
   * For `/admin`: all keys of a user, with `cascade` what they made too. Answers how many those
   * are.
   */
  readonly deleteApiKeysOf: (
    caller: Caller,
    of: { readonly team: string; readonly user: string; readonly cascade: boolean },
  ) => Promise<number>;
  /**
   * For `/admin`: has the key count on all worker clusters; returns its id. Refuses with
   * ALREADY_GLOBAL, then with CLUSTER_UNAVAILABLE.
   */
  readonly promoteApiKey: (caller: Caller, name: ApiKeyName) => Promise<string>;
  /**
   * Calls `ended` once, as soon as the key is revoked or has expired; at once where it is. Answers
   * the way to end it.
   */
  readonly followKey: (keyId: string, ended: () => void) => () => void;

  /**
   * Claims one idle instance of a pool for the caller. The returned sandbox is durable. An abort of
   * `signal` ends a claim that waits, with its reason.
   */
  readonly claimSandbox: (
    caller: Caller,
    request: ClaimRequest,
    signal?: AbortSignal,
  ) => Promise<SandboxView>;
  /**
   * Resolves once it is known whether a claim of this mark has landed, whose request was refused
   * before it was; undefined where none is open.
   */
  readonly pendingClaim: (mark: RequestFingerprint) => Promise<void> | undefined;
  readonly getSandbox: (caller: Caller, sandboxId: string) => Promise<SandboxDetailView>;
  readonly listSandboxes: (
    caller: Caller,
    filter: SandboxFilter,
    page: PageRequest,
  ) => Promise<Page<SandboxView>>;
  /** Durable that it ends, when it resolves. The view's status is Stopping. */
  readonly deleteSandbox: (caller: Caller, sandboxId: string) => Promise<SandboxView>;
  readonly setIdleTimeout: (
    caller: Caller,
    sandboxId: string,
    change: { readonly idleTimeoutMs: number; readonly ifMatch?: IfMatch | undefined },
  ) => Promise<SandboxView>;
  readonly execInSandbox: (
    caller: Caller,
    sandboxId: string,
    request: ExecRequest,
    signal: AbortSignal,
  ) => Promise<ExecOutcome>;
  /** The end of what the sandbox printed; of a finished one for as long as it is kept. */
  readonly sandboxLogs: (
    caller: Caller,
    sandboxId: string,
    request: LogsRequest,
  ) => Promise<SandboxLogs>;
  readonly followSandboxLogs: (
    caller: Caller,
    sandboxId: string,
    request: LogsRequest & { readonly after?: string },
  ) => Promise<LogsFollow>;
  /** The last 50, the oldest first; of a finished sandbox for as long as it is kept. */
  readonly sandboxEvents: (caller: Caller, sandboxId: string) => Promise<readonly EventRecord[]>;
  /** The last 50, the oldest first; of a deleted pool for as long as they are kept. */
  readonly poolEvents: (caller: Caller, name: string) => Promise<readonly EventRecord[]>;
  /** What happens from now on, or after the event with the id `after`; `all` is an admin's. */
  readonly followEvents: (
    caller: Caller,
    request: { readonly all: boolean; readonly after?: string },
  ) => EventsFollow;
  /** A single-use token of 30 seconds that opens a terminal. */
  readonly createExecToken: (caller: Caller, sandboxId: string) => Promise<string>;
  readonly openTerminal: (request: OpenTerminalRequest) => Promise<OpenTerminal>;

  /** Runs the sandbox's readiness probes, now. */
  readonly isReady: (caller: Caller, sandboxId: string) => Promise<SandboxReadiness>;
  /**
   * The way to an endpoint of the caller's running sandbox, by HTTP under
   * `/sandboxes/{sandboxId}/endpoints/{name}/`. Throws a Refusal.
   */
  readonly openEndpoint: (
    caller: Caller,
    sandboxId: string,
    name: string,
  ) => OpenEndpoint | Promise<OpenEndpoint>;

  readonly createPool: (caller: Caller, request: CreatePoolRequest) => Promise<PoolView>;
  /**
   * The caller's pool of that name, where an earlier request of this mark made it. Refuses with
   * IDEMPOTENCY_KEY_REUSED where it had another body.
   */
  readonly findPoolByKey: (
    caller: Caller,
    name: string,
    mark: RequestFingerprint,
  ) => Promise<PoolView | undefined>;
  readonly getPool: (caller: Caller, name: string) => Promise<PoolView>;
  readonly listPools: (
    caller: Caller,
    filter: { readonly all: boolean; readonly phase?: PoolPhase },
    page: PageRequest,
  ) => Promise<Page<PoolView>>;
  readonly updatePool: (caller: Caller, name: string, change: PoolChange) => Promise<PoolView>;
  /** Renders the pool anew from its template and its owner's wishes; replicas stay. */
  readonly syncPool: (caller: Caller, name: string) => Promise<PoolView>;
  /** What `syncPool` would apply. Writes nothing. */
  readonly previewPoolSync: (caller: Caller, name: string) => Promise<PoolSyncView>;
  readonly deletePool: (
    caller: Caller,
    name: string,
    options: { readonly force: boolean },
  ) => Promise<PoolView>;

  readonly createEnv: (caller: Caller, request: CreateEnvRequest) => Promise<EnvView>;
  /**
   * The caller's env of that name, where an earlier request of this mark made it. Refuses with
   * IDEMPOTENCY_KEY_REUSED where it had another body.
   */
  readonly findEnvByKey: (
    caller: Caller,
    name: string,
    mark: RequestFingerprint,
  ) => Promise<EnvView | undefined>;
  readonly getEnv: (caller: Caller, name: string) => Promise<EnvView>;
  readonly listEnvs: (
    caller: Caller,
    filter: { readonly all: boolean },
    page: PageRequest,
  ) => Promise<Page<EnvView>>;
  readonly replaceEnv: (caller: Caller, name: string, change: EnvReplacement) => Promise<EnvView>;
  readonly patchEnv: (caller: Caller, name: string, change: EnvPatchRequest) => Promise<EnvView>;
  readonly deleteEnv: (
    caller: Caller,
    name: string,
    options: { readonly force: boolean },
  ) => Promise<EnvView>;
  /** Renders every member's pool anew. Refuses with ENV_SYNC_PARTIAL. */
  readonly syncEnv: (caller: Caller, name: string) => Promise<EnvView>;
  readonly addMember: (
    caller: Caller,
    envName: string,
    request: AddMemberRequest,
  ) => Promise<MemberView>;
  /** The same for a member, as `findEnvByKey` for an env. */
  readonly findMemberByKey: (
    caller: Caller,
    envName: string,
    mark: RequestFingerprint,
  ) => Promise<MemberView | undefined>;
  readonly listMembers: (caller: Caller, envName: string) => Promise<readonly PoolView[]>;
  readonly updateMember: (
    caller: Caller,
    envName: string,
    name: string,
    change: MemberChange,
  ) => Promise<MemberView>;
  readonly deleteMember: (
    caller: Caller,
    envName: string,
    name: string,
    options: { readonly force: boolean },
  ) => Promise<{ readonly name: string; readonly namespace: string }>;
  readonly listGroups: (caller: Caller, envName: string) => Promise<readonly AutoscalingGroup[]>;
  readonly getGroup: (caller: Caller, envName: string, groupName: string) => Promise<GroupView>;
  /** The newest first; those that are kept. */
  readonly groupDecisions: (
    caller: Caller,
    envName: string,
    groupName: string,
  ) => Promise<readonly CompletedDecision[]>;
  readonly updateGroup: (
    caller: Caller,
    envName: string,
    groupName: string,
    change: GroupChange & { readonly ifMatch?: IfMatch | undefined },
  ) => Promise<GroupView>;
  readonly deleteGroup: (caller: Caller, envName: string, groupName: string) => Promise<void>;

  /** Refuses with UNAVAILABLE where it is not known what is used; so do the next two. */
  readonly getQuotas: (caller: Caller) => Promise<QuotaView>;
  /** For `/admin`: of any user. */
  readonly getQuotasOf: (caller: Caller, user: TeamUser) => Promise<QuotaView>;
  /** The same; what is not named stays as it is. Durable when it resolves. */
  readonly setQuotasOf: (caller: Caller, user: TeamUser, change: QuotaChange) => Promise<QuotaView>;

  readonly getTemplate: (name: string) => Promise<TemplateView>;
  readonly listTemplates: (page: PageRequest) => Page<TemplateView>;
  /** These three for `/admin`. Durable when they resolve. */
  readonly createTemplate: (document: SandboxTemplateDocument) => Promise<TemplateView>;
  readonly updateTemplate: (
    name: string,
    change: TemplateChange & { readonly ifMatch?: IfMatch | undefined },
  ) => Promise<TemplateView>;
  readonly deleteTemplate: (name: string) => Promise<void>;

  readonly listInstanceTypes: () => readonly InstanceType[];
  /** Those of the caller's namespace; whose it is follows from the key alone. */
  readonly listVolumes: (caller: Caller) => Promise<readonly Volume[]>;
  readonly featureGates: () => FeatureGates;
  readonly listClusters: () => readonly ClusterView[];
  /** For `/admin`: of all namespaces. */
  readonly sandboxStatistics: () => Promise<SandboxStatistics>;

  readonly readiness: () => Readiness;
  /** Refuses with FEATURE_DISABLED where nothing is taken down. */
  readonly listAudit: (caller: Caller, request: AuditRequest) => Promise<AuditList>;
  /** Of the log of the replica that answers. */
  readonly getLogLevel: LogLevels['getLogLevel'];
  readonly setLogLevel: LogLevels['setLogLevel'];
  readonly shards: () => ShardReport;
}

export interface ApiKeyName {
  readonly namespace: string;
  readonly shortName: string;
}
export interface TeamUser {
  readonly team: string;
  readonly user: string;
}

export interface ApiKeyRequest {
  /**
   * Of a request under an Idempotency-Key, and of its repetitions alone: they get the same key. A
   * secret.
   */
  readonly seed?: Buffer;
  readonly name?: string;
  readonly description?: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
}
export interface AdminApiKeyRequest extends ApiKeyRequest {
  readonly team?: string;
  readonly user?: string;
  readonly role?: Role;
}
export interface IssuedApiKey {
  readonly record: ApiKeyRecord;
  readonly apiKey: string;
}

export interface ClaimRequest {
  readonly poolName: string;
  readonly idleTimeoutMs?: number;
  /** How long to wait for an instance where none is idle; 0 where it is left out. */
  readonly waitMs?: number;
  /** Of one with an Idempotency-Key; found again is what an earlier one claimed. */
  readonly opening?: IdempotentRequest;
  /** Of one that is open already. */
  readonly mark?: RequestFingerprint;
  /** Told what each step took. */
  readonly step?: OnStep;
}

export interface SandboxFilter {
  readonly poolName?: string;
  readonly phase?: SandboxStatus;
  /** These four are an admin's; the HTTP layer refuses them from others. */
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly all?: boolean;
}

export interface LogsRequest {
  readonly container?: string;
  readonly tailLines: number;
  /** Nothing older. */
  readonly sinceMs?: number;
}

export interface SandboxLogs {
  readonly sandboxId: string;
  readonly container: string;
  readonly lines: readonly LogLine[];
  /** Older lines were asked for than these. */
  readonly truncated: boolean;
}

export interface LogsFollow {
  /** What the last lines take until the first batch, which they are, was given. */
  readonly heldBytes: number;
  /** The last lines, then what is printed until the sandbox is gone. To be called once. */
  readonly batches: (signal: AbortSignal) => AsyncIterable<LogBatch>;
  /** Gives the seat back. May be repeated. */
  readonly close: () => void;
}

export interface EventsFollow {
  /** To be called once. */
  readonly batches: (signal: AbortSignal) => AsyncIterable<EventBatch>;
  /** Gives the seat back. May be repeated. */
  readonly close: () => void;
}

export interface OpenTerminalRequest {
  readonly clusterId: string;
  readonly sandboxId: string;
  readonly token: string;
  readonly cols: number;
  readonly rows: number;
}

/**
 * An open terminal. `touch` marks activity; `ended` settles when the sandbox ends under it, or the
 * key that it was opened by is worth nothing any more.
 */
export interface OpenTerminal {
  /** Whose key opened it; undefined where that is not known any more. */
  readonly caller?: Caller | undefined;
  readonly terminal: Terminal;
  readonly touch: () => void;
  readonly ended: Promise<'sandbox-ended' | 'key-revoked'>;
  /** Gives the seat back (at most 16 a sandbox) and hangs up. May be repeated. */
  readonly close: () => void;
}

export interface SandboxReadiness {
  readonly sandboxId: string;
  readonly ready: boolean;
  /** By name. */
  readonly endpoints: Readonly<
    Record<string, { readonly ready: boolean; readonly message: string }>
  >;
}

/**
 * A way to an endpoint, open until it is closed; it counts against what sandbox and tenant may have
 * open.
 */
export interface OpenEndpoint {
  readonly sandboxId: string;
  readonly port: number;
  readonly scheme: 'http' | 'https';
  /** A connection of its own to the port, as SandboxDriver.dial gives it. */
  readonly dial: (signal: AbortSignal) => Promise<PortConnection>;
  /** Marks activity; cheap enough to be called with each chunk. */
  readonly touch: () => void;
  /** May be repeated. */
  readonly close: () => void;
}

/** What a pool's owner may say of it. */
export interface PoolSpec {
  readonly source?: PoolSource;
  /** Secrets. Replaces those that were given before. */
  readonly registries?: readonly RegistryCredentials[];
  readonly replicas?: number;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly access?: Access;
  readonly updateStrategy?: Partial<UpdateStrategy>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface CreatePoolRequest extends PoolSpec {
  readonly name: string;
  readonly source: PoolSource;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mark?: RequestFingerprint;
}

export interface PoolChange extends PoolSpec {
  /**
   * Paths of fields that are set no more, such as `cpu` or `overrides.image`: what counts below
   * them counts again.
   */
  readonly unset?: readonly string[];
  readonly ifMatch?: IfMatch | undefined;
}

interface EnvSpec {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly access?: Access;
  readonly templateRef: TemplateRef;
  readonly overrides: EnvOverrides;
  /** Secrets. Replaces those that were given before. */
  readonly registries?: readonly RegistryCredentials[];
}

export interface CreateEnvRequest extends EnvSpec {
  readonly name: string;
  readonly mode: EnvMode;
  readonly envDocs?: string;
  readonly mark?: RequestFingerprint;
}

/** Name and mode can't change. */
export interface EnvReplacement extends EnvSpec {
  readonly name?: string;
  readonly mode?: EnvMode;
  readonly ifMatch?: IfMatch | undefined;
}

/** null removes, objects merge, all else takes the place of what is there. */
export interface EnvPatchRequest {
  readonly patch: {
    readonly overrides?: Patch | null;
    readonly labels?: Patch | null;
    readonly annotations?: Patch | null;
    readonly envDocs?: string | null;
    readonly access?: Access | null;
  };
  readonly registries?: readonly RegistryCredentials[];
  readonly ifMatch?: IfMatch | undefined;
}

export interface AddMemberRequest {
  /** Generated where it is left out. */
  readonly name?: string;
  readonly clusterId?: string;
  readonly replicas?: number;
  readonly config: MemberConfig;
  readonly mark?: RequestFingerprint;
}

/** What is not named stays. */
export interface MemberChange {
  readonly replicas?: number;
  readonly config: MemberConfig;
  readonly ifMatch?: IfMatch | undefined;
}

export interface GroupView {
  readonly env: EnvRecord;
  readonly group: AutoscalingGroup;
}

/** What is not named stays. An empty text is none. */
export interface TemplateChange {
  readonly document?: SandboxTemplateDocument;
  readonly description?: string;
  readonly docs?: string;
  readonly poolSizing?: (typeof POOL_SIZINGS)[number];
}

export interface ShardReport {
  readonly replica: string;
  readonly replicas: readonly string[];
  /** `leading`: by this replica. `replica`: who holds its lease, where that is known. */
  readonly shards: readonly {
    readonly shard: number;
    readonly leading: boolean;
    readonly replica?: string;
  }[];
}

export interface Readiness {
  readonly ready: boolean;
  /** `PART: what is wrong with it`; empty when all is well. */
  readonly problems: readonly string[];
  /** What works but gives less than it should. */
  readonly warnings: readonly string[];
  readonly isolation: string;
}

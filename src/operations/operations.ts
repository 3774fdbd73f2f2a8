import type { ExecOutcome, ExecRequest, LogBatch, LogLine, PortConnection, Terminal } from '../contracts/sandbox-driver.ts';
import type { ApiKeyRecord } from '../model/api-key.ts';
import type { EventBatch, EventRecord } from '../model/event.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { IfMatch } from '../model/if-match.ts';
import type { RequestMark } from '../model/request-mark.ts';
import type { SandboxStatus } from '../model/sandbox.ts';
import type { Caller, Role } from '../model/tenant.ts';
import type { Page, PageRequest, PoolView, SandboxDetailView, SandboxView } from './views.ts';

/** Every use case, one a file beside this one; the HTTP layer calls nothing else. Each rejects with a Refusal for an expected "no". */
export interface Operations {
  /** The caller behind a `SERVICE-API-KEY` header's value. Refuses with API_KEY_REQUIRED or INVALID_API_KEY. */
  readonly authenticate: (key: string | undefined) => Caller;
  /** The same for one that was refused: another replica may have made it a moment ago. */
  readonly authenticateAfresh: (key: string | undefined) => Promise<Caller>;
  readonly createApiKey: (caller: Caller, request: ApiKeyRequest) => Promise<IssuedApiKey>;
  /** For `/admin`: the key of any team and user; they default to the caller's. */
  readonly createApiKeyForTenant: (caller: Caller, request: AdminApiKeyRequest) => Promise<IssuedApiKey>;
  readonly listApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  readonly listAllApiKeys: (caller: Caller, page: PageRequest) => Promise<Page<ApiKeyRecord>>;
  /** Durable, and the key worth nothing, when it resolves. */
  readonly deleteApiKey: (caller: Caller, keyId: string) => Promise<void>;
  /** The same for `/admin`; answers the key's id. */
  readonly deleteApiKeyByName: (caller: Caller, name: { readonly namespace: string; readonly shortName: string }) => Promise<string>;

  /** Claims one idle instance of a pool for the caller. The returned sandbox is durable. */
  readonly claimSandbox: (caller: Caller, request: ClaimRequest) => Promise<SandboxView>;
  /**
   * What an earlier request of this mark claimed, as long as it lives: its answer was lost with the daemon, or its client.
   * Refuses with IDEMPOTENCY_IN_FLIGHT while it is not known whether such a claim landed, with IDEMPOTENCY_KEY_REUSED where
   * it had another body. `instance`: another replica began the request and is gone; it may have claimed this one, and if it did
   * not it never will once this resolves.
   */
  readonly claimedUnder: (caller: Caller, mark: RequestMark, instance?: InstanceId) => Promise<SandboxView | undefined>;
  /** Resolves once it is known whether a claim of this mark has landed, whose request was refused before it was; undefined where none is open. */
  readonly unsettledClaim: (mark: RequestMark) => Promise<void> | undefined;
  readonly getSandbox: (caller: Caller, sandboxId: string) => Promise<SandboxDetailView>;
  readonly listSandboxes: (caller: Caller, filter: SandboxFilter, page: PageRequest) => Promise<Page<SandboxView>>;
  /** Durable that it ends, when it resolves. The view's status is Stopping. */
  readonly deleteSandbox: (caller: Caller, sandboxId: string) => Promise<SandboxView>;
  readonly setIdleTimeout: (caller: Caller, sandboxId: string, change: { readonly idleTimeoutMs: number; readonly ifMatch?: IfMatch | undefined }) => Promise<SandboxView>;
  readonly execInSandbox: (caller: Caller, sandboxId: string, request: ExecRequest, signal: AbortSignal) => Promise<ExecOutcome>;
  /** The end of what the sandbox printed; of a finished one for as long as it is kept. */
  readonly sandboxLogs: (caller: Caller, sandboxId: string, request: LogsRequest) => Promise<SandboxLogs>;
  readonly followSandboxLogs: (caller: Caller, sandboxId: string, request: LogsRequest & { readonly after?: string }) => Promise<LogsFollow>;
  /** The last 50, the oldest first; of a finished sandbox for as long as it is kept. */
  readonly sandboxEvents: (caller: Caller, sandboxId: string) => Promise<readonly EventRecord[]>;
  /** What happens from now on, or after the event with the id `after`; `all` is an admin's. */
  readonly followEvents: (caller: Caller, request: { readonly all: boolean; readonly after?: string }) => EventsFollow;
  /** A single-use token of 30 seconds that opens a terminal. */
  readonly createExecToken: (caller: Caller, sandboxId: string) => Promise<string>;
  readonly openTerminal: (request: OpenTerminalRequest) => Promise<OpenTerminal>;

  /** Runs the sandbox's readiness probes, now. */
  readonly isReady: (caller: Caller, sandboxId: string) => Promise<SandboxReadiness>;
  /** The way to an endpoint of the caller's running sandbox, by HTTP under `/sandboxes/{sandboxId}/endpoints/{name}/`. Throws a Refusal. */
  readonly openEndpoint: (caller: Caller, sandboxId: string, name: string) => OpenEndpoint;

  readonly createPool: (caller: Caller, request: CreatePoolRequest) => Promise<PoolView>;
  /** The caller's pool of that name, where an earlier request of this mark made it. Refuses with IDEMPOTENCY_KEY_REUSED where it had another body. */
  readonly createdPoolUnder: (caller: Caller, name: string, mark: RequestMark) => Promise<PoolView | undefined>;
  readonly getPool: (caller: Caller, name: string) => Promise<PoolView>;
  readonly listPools: (caller: Caller, filter: { readonly all: boolean }, page: PageRequest) => Promise<Page<PoolView>>;
  readonly updatePool: (caller: Caller, name: string, change: { readonly replicas?: number; readonly ifMatch?: IfMatch | undefined }) => Promise<PoolView>;
  readonly deletePool: (caller: Caller, name: string, options: { readonly force: boolean }) => Promise<PoolView>;

  readonly readiness: () => Readiness;
  readonly shards: () => ShardReport;
}

export interface ApiKeyRequest {
  /** Of a request under an Idempotency-Key, and of its repetitions alone: they get the same key. A secret. */
  readonly seed?: Buffer;
  readonly name?: string;
  readonly description?: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
}
export interface AdminApiKeyRequest extends ApiKeyRequest { readonly team?: string; readonly user?: string; readonly role?: Role }
export interface IssuedApiKey { readonly record: ApiKeyRecord; readonly apiKey: string }

export interface ClaimRequest { readonly poolName: string; readonly idleTimeoutMs?: number; readonly mark?: RequestMark }

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

/** An open terminal. `touch` marks activity; `ended` settles when the sandbox ends under it. */
export interface OpenTerminal {
  readonly terminal: Terminal;
  readonly touch: () => void;
  readonly ended: Promise<void>;
  /** Gives the seat back (at most 16 a sandbox) and hangs up. May be repeated. */
  readonly close: () => void;
}

export interface SandboxReadiness {
  readonly sandboxId: string;
  readonly ready: boolean;
  /** By name. */
  readonly endpoints: Readonly<Record<string, { readonly ready: boolean; readonly message: string }>>;
}

/** A way to an endpoint, open until it is closed; it counts against what sandbox and tenant may have open. */
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

export interface CreatePoolRequest {
  readonly name: string;
  readonly templateName?: string;
  readonly replicas: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mark?: RequestMark;
}

export interface ShardReport {
  readonly replica: string;
  readonly replicas: readonly string[];
  /** `leading`: by this replica. `replica`: who holds its lease, where that is known. */
  readonly shards: readonly { readonly shard: number; readonly leading: boolean; readonly replica?: string }[];
}

export interface Readiness {
  readonly ready: boolean;
  /** `PART: what is wrong with it`; empty when all is well. */
  readonly problems: readonly string[];
  /** What works but gives less than it should. */
  readonly warnings: readonly string[];
  readonly isolation: string;
}

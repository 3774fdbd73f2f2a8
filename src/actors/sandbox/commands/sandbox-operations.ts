import type { OnStep } from '../../../contracts/tracing.ts';
import type {
  ExecOutcome,
  ExecRequest,
  LogBatch,
  LogLine,
  PortConnection,
  Terminal,
} from '../../../contracts/sandbox-driver.ts';
import type { EventBatch, EventRecord } from '../../../model/event.ts';
import type { ClaimFile, TextPairs } from '../../../model/claim-terms.ts';
import type { IfMatch } from '../../../model/if-match.ts';
import type { RequestFingerprint } from '../../../model/request-fingerprint.ts';
import type { SandboxStatus } from '../../../model/sandbox.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { IdempotentRequest } from '../../request/idempotent-request.ts';
import type {
  Page,
  PageRequest,
  SandboxDetailView,
  SandboxStatistics,
  SandboxView,
} from '../../views.ts';

/** Operations on sandboxes, including claims. */
export interface SandboxOperations {
  /**
   * Claims one idle instance of a pool for the caller. The returned sandbox is durable. An abort of
   * `signal` rejects a waiting claim with its reason. If a file of the claim can't be written, the
   * sandbox ends and the Refusal names the field.
   */
  readonly claimSandbox: (
    caller: Caller,
    request: ClaimRequest,
    signal?: AbortSignal,
  ) => Promise<SandboxView>;
  /**
   * Resolves when the outcome of a refused request's claim is known; undefined if no such claim is
   * open.
   */
  readonly pendingClaim: (mark: RequestFingerprint) => Promise<void> | undefined;
  /**
   * Opens a request, and returns the sandbox that an earlier request with its key claimed here,
   * even if no client got that answer. Undefined if there is none and never will be. Refuses while
   * that is unknown.
   */
  readonly claimedBefore: (
    caller: Caller,
    opening: IdempotentRequest,
  ) => Promise<SandboxView | undefined>;
  readonly getSandbox: (caller: Caller, sandboxId: string) => Promise<SandboxDetailView>;
  readonly listSandboxes: (
    caller: Caller,
    filter: SandboxFilter,
    page: PageRequest,
  ) => Promise<Page<SandboxView>>;
  /** The end is durable when this resolves. The view's status is Stopping. */
  readonly deleteSandbox: (caller: Caller, sandboxId: string) => Promise<SandboxView>;
  readonly setIdleTimeout: (
    caller: Caller,
    sandboxId: string,
    change: { readonly idleTimeoutMs: number; readonly ifMatch?: IfMatch },
  ) => Promise<SandboxView>;
  /**
   * Ends the sandbox `lifetimeMs` from now, even if it is active. `extend` never makes the end
   * earlier. A pause postpones it. Durable when this resolves.
   */
  readonly setSandboxEnd: (
    caller: Caller,
    sandboxId: string,
    change: { readonly lifetimeMs: number; readonly extend: boolean },
  ) => Promise<SandboxView>;
  /** The state is reached and durable when this resolves. */
  readonly setSandboxState: (
    caller: Caller,
    sandboxId: string,
    state: 'paused' | 'running',
  ) => Promise<SandboxView>;
  readonly execInSandbox: (
    caller: Caller,
    sandboxId: string,
    command: { readonly request: ExecRequest; readonly signal: AbortSignal },
  ) => Promise<ExecOutcome>;
  /** Returns the last log lines; for a finished sandbox, while its log is kept. */
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
  /** Returns the last 50 events, oldest first; for a finished sandbox, while they are kept. */
  readonly sandboxEvents: (caller: Caller, sandboxId: string) => Promise<readonly EventRecord[]>;
  /**
   * Streams events from now on, or after the event with the id `after`. Only admins may set `all`.
   */
  readonly followEvents: (
    caller: Caller,
    request: { readonly all: boolean; readonly after?: string },
  ) => EventsFollow;
  /** Issues a single-use token that opens a terminal within 30 seconds. */
  readonly createExecToken: (caller: Caller, sandboxId: string) => Promise<string>;
  readonly openTerminal: (request: OpenTerminalRequest) => Promise<OpenTerminal>;
  /** Runs the sandbox's readiness probes. */
  readonly isReady: (caller: Caller, sandboxId: string) => Promise<SandboxReadiness>;
  /**
   * Opens an HTTP route to an endpoint of the caller's running sandbox, under
   * `/sandboxes/{sandboxId}/endpoints/{name}/`. Throws a Refusal.
   */
  readonly openEndpoint: (
    caller: Caller,
    sandboxId: string,
    name: string,
  ) => OpenEndpoint | Promise<OpenEndpoint>;
  /** Opens an HTTP route to a port of the caller's running sandbox. Throws a Refusal. */
  readonly openPort: (
    caller: Caller,
    sandboxId: string,
    port: number,
  ) => OpenEndpoint | Promise<OpenEndpoint>;
  /** For `/admin`: counts of all namespaces. */
  readonly sandboxStatistics: () => Promise<SandboxStatistics>;
}

export interface ClaimRequest {
  readonly poolName: string;
  readonly idleTimeoutMs?: number;
  /** Time from the claim to its end, even if the sandbox is active; `setSandboxEnd` changes it. */
  readonly lifetimeMs?: number;
  /** Longest wait for an idle instance; 0 if absent. */
  readonly waitMs?: number;
  /**
   * Request under an Idempotency-Key that the claim opens. A repetition finds the earlier claim.
   */
  readonly opening?: IdempotentRequest;
  /** Fingerprint of an already open request. */
  readonly mark?: RequestFingerprint;
  /** Environment of processes in the sandbox; stored sealed, and never shown. */
  readonly env?: TextPairs;
  readonly metadata?: TextPairs;
  /** Written before the claim resolves; otherwise the claim is undone (see ClaimFiles). */
  readonly files?: readonly ClaimFile[];
  /** Resumes a paused sandbox on a call that needs it running. */
  readonly autoResume?: boolean;
  /** Pauses instead of ending after `lifetimeMs`. Refused if the driver can't pause. */
  readonly autoPause?: boolean;
  /** Launches an instance of the pool with this image instead of the pool's. */
  readonly image?: ClaimImage;
  /** Claims only a sandbox without a network. `field` is the request field that asks for this. */
  readonly withoutNetwork?: { readonly field: string };
  /** Receives the duration of each step. */
  readonly step?: OnStep;
}

/** An image, and the request field that names it. */
export interface ClaimImage {
  readonly name: string;
  readonly field: string;
}

export interface SandboxFilter {
  readonly poolName?: string;
  readonly phase?: SandboxStatus;
  /** Pairs that the claim's metadata must contain; limits the list to live sandboxes. */
  readonly metadata?: TextPairs;
  /** These four fields are for admins; the HTTP layer refuses them from others. */
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly all?: boolean;
}

export interface LogsRequest {
  readonly container?: string;
  readonly tailLines: number;
  /** Excludes lines older than this. */
  readonly sinceMs?: number;
}

export interface SandboxLogs {
  readonly sandboxId: string;
  readonly container: string;
  readonly lines: readonly LogLine[];
  /** True if older requested lines are missing. */
  readonly truncated: boolean;
}

export interface LogsFollow {
  /** Memory of the last lines in bytes, until the first batch delivers them. */
  readonly heldBytes: number;
  /** Yields the last lines, then new lines until the sandbox ends. Call it once. */
  readonly batches: (signal: AbortSignal) => AsyncIterable<LogBatch>;
  /** Releases the permit. May be repeated. */
  readonly close: () => void;
}

export interface EventsFollow {
  /** Call it once. */
  readonly batches: (signal: AbortSignal) => AsyncIterable<EventBatch>;
  /** Releases the permit. May be repeated. */
  readonly close: () => void;
}

export interface OpenTerminalRequest {
  readonly clusterId: string;
  readonly sandboxId: string;
  readonly token: string;
  readonly cols: number;
  readonly rows: number;
  /** The request came over a link to a manager. */
  readonly overLink?: boolean;
}

/**
 * An open terminal. `touch` records activity. `ended` settles when the sandbox ends or the key that
 * opened it is revoked.
 */
export interface OpenTerminal {
  /** Caller whose key opened it; undefined if the key is no longer known. */
  readonly caller?: Caller;
  /** Key of the caller if only a manager knows it; the manager must report its end. */
  readonly linkedKeyId?: string;
  readonly terminal: Terminal;
  /** Closes a process's input; a shell gets the end-of-file character. */
  readonly closeInput?: () => void;
  readonly touch: () => void;
  readonly ended: Promise<'sandbox-ended' | 'key-revoked'>;
  /** Releases the permit (at most 16 a sandbox) and hangs up. May be repeated. */
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
 * An open route to an endpoint. Counts against the limits of sandbox and tenant until it is closed.
 */
export interface OpenEndpoint {
  readonly sandboxId: string;
  readonly port: number;
  readonly scheme: 'http' | 'https';
  /**
   * Returns the claim's variables for the server behind the endpoint, if any. Empty if the sandbox
   * shares the host's network, since another process may listen there. Throws a Refusal.
   */
  readonly env: () => TextPairs | undefined;
  /** Opens a new connection to the port, as SandboxDriver.dial does. */
  readonly dial: (signal: AbortSignal) => Promise<PortConnection>;
  /** Records activity; cheap enough for each chunk. */
  readonly touch: () => void;
  /** May be repeated. */
  readonly close: () => void;
}

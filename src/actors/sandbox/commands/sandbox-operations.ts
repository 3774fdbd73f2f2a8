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

export interface SandboxOperations {
  /**
   * The returned sandbox is durable. An abort of `signal` rejects a waiting claim with its reason.
   * If a file of the claim can't be written, the sandbox ends and the Refusal names the field.
   */
  readonly claimSandbox: (
    caller: Caller,
    request: ClaimRequest,
    signal?: AbortSignal,
  ) => Promise<SandboxView>;
  /** Resolves when the claim's outcome is known; undefined if no such claim is open. */
  readonly pendingClaim: (mark: RequestFingerprint) => Promise<void> | undefined;
  /**
   * Opens the request. Undefined if no earlier request with its key claimed a sandbox here, nor
   * ever will. Refuses while that is unknown.
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
   * `lifetimeMs` from now, even if it is active. `extend` never makes the end earlier. A pause
   * postpones it. Durable when this resolves.
   */
  readonly setSandboxEnd: (
    caller: Caller,
    sandboxId: string,
    change: { readonly lifetimeMs: number; readonly extend: boolean },
  ) => Promise<SandboxView>;
  /** Durable when this resolves. */
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
  /** The last 50, oldest first; for a finished sandbox, while they are kept. */
  readonly sandboxEvents: (caller: Caller, sandboxId: string) => Promise<readonly EventRecord[]>;
  /** From now on, or after the event with the id `after`. Only admins may set `all`. */
  readonly followEvents: (
    caller: Caller,
    request: { readonly all: boolean; readonly after?: string },
  ) => EventsFollow;
  /** The token opens one terminal within 30 seconds. */
  readonly createExecToken: (caller: Caller, sandboxId: string) => Promise<string>;
  readonly openTerminal: (request: OpenTerminalRequest) => Promise<OpenTerminal>;
  readonly isReady: (caller: Caller, sandboxId: string) => Promise<SandboxReadiness>;
  /** Under `/sandboxes/{sandboxId}/endpoints/{name}/`. Throws a Refusal. */
  readonly openEndpoint: (
    caller: Caller,
    sandboxId: string,
    name: string,
  ) => OpenEndpoint | Promise<OpenEndpoint>;
  readonly openPort: (
    caller: Caller,
    sandboxId: string,
    port: number,
  ) => OpenEndpoint | Promise<OpenEndpoint>;
  /** For `/admin`: all namespaces. */
  readonly sandboxStatistics: () => Promise<SandboxStatistics>;
}

export interface ClaimRequest {
  readonly poolName: string;
  readonly idleTimeoutMs?: number;
  /** Applies even if the sandbox is active; `setSandboxEnd` changes it. */
  readonly lifetimeMs?: number;
  readonly waitMs?: number;
  /** The claim opens it. A repetition finds the earlier claim. */
  readonly opening?: IdempotentRequest;
  readonly mark?: RequestFingerprint;
  /** Stored sealed, and never shown. */
  readonly env?: TextPairs;
  readonly metadata?: TextPairs;
  /** Written before the claim resolves; otherwise the claim is undone. */
  readonly files?: readonly ClaimFile[];
  /** Resumes a paused sandbox on a call that needs it running. */
  readonly autoResume?: boolean;
  /** Pauses instead of ending after `lifetimeMs`. Refused if the driver can't pause. */
  readonly autoPause?: boolean;
  /** Launches an instance with this image instead of the pool's. */
  readonly image?: ClaimImage;
  /** `field` is the request field that asks for this. */
  readonly withoutNetwork?: { readonly field: string };
  readonly step?: OnStep;
}

export interface ClaimImage {
  readonly name: string;
  readonly field: string;
}

export interface SandboxFilter {
  readonly poolName?: string;
  readonly phase?: SandboxStatus;
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
  readonly sinceMs?: number;
}

export interface SandboxLogs {
  readonly sandboxId: string;
  readonly container: string;
  readonly lines: readonly LogLine[];
  /** Older requested lines are missing. */
  readonly truncated: boolean;
}

export interface LogsFollow {
  readonly heldBytes: number;
  /** Call it once. Ends with the sandbox. */
  readonly batches: (signal: AbortSignal) => AsyncIterable<LogBatch>;
  /** May be repeated. */
  readonly close: () => void;
}

export interface EventsFollow {
  /** Call it once. */
  readonly batches: (signal: AbortSignal) => AsyncIterable<EventBatch>;
  /** May be repeated. */
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

/** `ended` settles when the sandbox ends or the key that opened it is revoked. */
export interface OpenTerminal {
  readonly caller?: Caller;
  /** Known only to a manager, which must report its end. */
  readonly linkedKeyId?: string;
  readonly terminal: Terminal;
  /** A shell gets the end-of-file character. */
  readonly closeInput?: () => void;
  readonly touch: () => void;
  readonly ended: Promise<'sandbox-ended' | 'key-revoked'>;
  /** Releases the permit and hangs up. May be repeated. */
  readonly close: () => void;
}

export interface SandboxReadiness {
  readonly sandboxId: string;
  readonly ready: boolean;
  readonly endpoints: Readonly<
    Record<string, { readonly ready: boolean; readonly message: string }>
  >;
}

/** Counts against the limits of sandbox and tenant until it is closed. */
export interface OpenEndpoint {
  readonly sandboxId: string;
  readonly port: number;
  readonly scheme: 'http' | 'https';
  /**
   * Empty if the sandbox shares the host's network, since another process may listen there. Throws
   * a Refusal.
   */
  readonly env: () => TextPairs | undefined;
  /** As SandboxDriver.dial. */
  readonly dial: (signal: AbortSignal) => Promise<PortConnection>;
  /** Cheap enough for each chunk. */
  readonly touch: () => void;
  /** May be repeated. */
  readonly close: () => void;
}

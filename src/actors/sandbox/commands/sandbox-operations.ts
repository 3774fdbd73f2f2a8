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

/** The use cases of sandboxes: claims, and what is done with one. */
export interface SandboxOperations {
  /**
   * Claims one idle instance of a pool for the caller. The returned sandbox is durable. An abort of
   * `signal` ends a claim that waits, with its reason. Where a file of the claim can't be written
   * its sandbox ends, and the Refusal names the field.
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
  /**
   * Opens a request, and returns what an earlier one of its key claimed here, also where nobody was
   * told of that; undefined: nothing, and it never will. Refuses where that is not known yet.
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
  /** Durable that it ends, when it resolves. The view's status is Stopping. */
  readonly deleteSandbox: (caller: Caller, sandboxId: string) => Promise<SandboxView>;
  readonly setIdleTimeout: (
    caller: Caller,
    sandboxId: string,
    change: { readonly idleTimeoutMs: number; readonly ifMatch?: IfMatch },
  ) => Promise<SandboxView>;
  /**
   * Has the sandbox end so long from now, whatever it does; `extend`: not before it would anyway.
   * A pause puts that off. Durable when it resolves.
   */
  readonly setSandboxEnd: (
    caller: Caller,
    sandboxId: string,
    change: { readonly lifetimeMs: number; readonly extend: boolean },
  ) => Promise<SandboxView>;
  /** Durable, and so, when it resolves. */
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
  /**
   * Streams what happens from now on, or after the event with the id `after`; `all` is an admin's.
   */
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
  /** The way to a port of the caller's running sandbox that speaks HTTP. Throws a Refusal. */
  readonly openPort: (
    caller: Caller,
    sandboxId: string,
    port: number,
  ) => OpenEndpoint | Promise<OpenEndpoint>;
  /** For `/admin`: of all namespaces. */
  readonly sandboxStatistics: () => Promise<SandboxStatistics>;
}

export interface ClaimRequest {
  readonly poolName: string;
  readonly idleTimeoutMs?: number;
  /** Ends so long after the claim, whatever it does; `setSandboxEnd` moves that. */
  readonly lifetimeMs?: number;
  /** How long to wait for an instance where none is idle; 0 where it is left out. */
  readonly waitMs?: number;
  /**
   * The request under an Idempotency-Key that the claim opens; found again is what an earlier one
   * claimed.
   */
  readonly opening?: IdempotentRequest;
  /** Fingerprint of a request that is open already. */
  readonly mark?: RequestFingerprint;
  /** Variables of what is run in the sandbox; kept sealed, and never shown. */
  readonly env?: TextPairs;
  readonly metadata?: TextPairs;
  /** Are in the sandbox when the claim resolves; else it is given back. See ClaimFiles. */
  readonly files?: readonly ClaimFile[];
  /** A call that needs the sandbox running ends its pause. */
  readonly autoResume?: boolean;
  /** It is paused when `lifetimeMs` is over, and does not end; refused where nothing is paused. */
  readonly autoPause?: boolean;
  /** Has an instance of the pool launched with this image in the place of the pool's. */
  readonly image?: ClaimImage;
  /** Claims only a sandbox without a network; `field`: the field of the request that asks. */
  readonly withoutNetwork?: { readonly field: string };
  /** Told what each step took. */
  readonly step?: OnStep;
}

/** Names an image; `field`: the field of the request that does. */
export interface ClaimImage {
  readonly name: string;
  readonly field: string;
}

export interface SandboxFilter {
  readonly poolName?: string;
  readonly phase?: SandboxStatus;
  /** All of these pairs are in the metadata of its claim; then live ones alone are listed. */
  readonly metadata?: TextPairs;
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
  /** Says what the last lines take until the first batch, which they are, was given. */
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
  /** It came over a link to a manager. */
  readonly overLink?: boolean;
}

/**
 * An open terminal. `touch` marks activity; `ended` settles when the sandbox ends under it, or the
 * key that it was opened by is worth nothing any more.
 */
export interface OpenTerminal {
  /** The caller whose key opened it; undefined where that is not known any more. */
  readonly caller?: Caller;
  /** The key of the caller where a manager knows it alone, and has to say when it ends. */
  readonly linkedKeyId?: string;
  readonly terminal: Terminal;
  /** Has a process read the end of its input; a shell is typed the character for it. */
  readonly closeInput?: () => void;
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
  /**
   * Returns the variables of the claim for what listens there, where it has some; none where the
   * sandbox has the host's network, since that may be another's. Throws a Refusal.
   */
  readonly env: () => TextPairs | undefined;
  /** A connection of its own to the port, as SandboxDriver.dial gives it. */
  readonly dial: (signal: AbortSignal) => Promise<PortConnection>;
  /** Marks activity; cheap enough to be called with each chunk. */
  readonly touch: () => void;
  /** May be repeated. */
  readonly close: () => void;
}

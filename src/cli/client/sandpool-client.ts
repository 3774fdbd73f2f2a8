import type { IncomingMessage } from 'node:http';
import { DebugCalls } from './debug-calls.ts';
import { ProcessCalls } from './process-calls.ts';
import { EnvCalls } from './env-calls.ts';
import { FileCalls } from './file-calls.ts';
import { asConnectionFailure, type ExchangeReports, HttpExchanges } from './http-exchange.ts';
import {
  type CallOptions,
  type OperationAnswer,
  type OperationId,
  type OperationInput,
  operationRequest,
} from './operation-request.ts';
import type { AwaitedApproval } from './until-approved.ts';
import { readServerEvents, type ReceivedEvent } from './server-events.ts';
import type { TerminalConnection } from './terminal-connection.ts';
import type {
  ClaimRequest,
  CreatePoolRequest,
  Event,
  EventList,
  ExecRequest,
  ExecResult,
  FollowedEvent,
  LogEvent,
  LogsQuery,
  OfCluster,
  Page,
  Pool,
  PoolChange,
  PoolDeletion,
  PoolFilter,
  PoolSyncPreview,
  Readiness,
  Sandbox,
  SandboxDeletion,
  SandboxFilter,
  SandboxLogs,
  Template,
  TemplateChange,
  TemplateDeletion,
  TemplateFilter,
  TemplateRequest,
} from './wire.ts';
import { StateCalls } from './state-calls.ts';
import { AccountCalls } from './account-calls.ts';

export interface SandpoolClientOptions {
  /** The daemon's address, such as `http://127.0.0.1:8080`. */
  readonly server: string | URL;
  readonly apiKey: string;
  /** The cluster of a sandbox whose id names none; `local` unless told. */
  readonly clusterId?: string;
  /**
   * The namespace of the pools and envs that calls name; the key's own unless told. Another one
   * needs a key with the admin role.
   */
  readonly namespace?: string;
  /** Milliseconds that a call may take; 30 s unless told. A command gets its own time on top. */
  readonly deadlineMs?: number;
  /** Told of what an answer warns of, such as a field that was not known. */
  readonly onWarning?: (text: string) => void;
  /**
   * Told of a request that a person must approve: the client waits for that, and repeats the
   * identical request. Without it such a call rejects with APPROVAL_REQUIRED.
   */
  readonly onApproval?: (approval: AwaitedApproval) => void;
}

export interface FollowOptions extends CallOptions {
  /** The id of the last event that was received: go on after it. */
  readonly lastEventId?: string;
}

const DEADLINE_MS = 30_000;
const MAX_EXEC_SECONDS = 300;

/**
 * The service's operations, one method each. Every call ends by its deadline. Rejects with ApiError
 * for an answer that says no, with ConnectionFailed where there was none. Nothing is tried again
 * here.
 */
export class SandpoolClient extends AccountCalls {
  readonly #server: URL;
  readonly #exchanges: HttpExchanges;
  readonly #clusterId: string;
  readonly #namespace: string | undefined;
  readonly #deadlineMs: number;
  readonly debug = new DebugCalls(
    (...call) => this.call(...call),
    (...call) => this.#opened(...call),
  );
  readonly processes = new ProcessCalls(
    (...call) => this.call(...call),
    (...call) => this.#opened(...call),
  );
  readonly envs = new EnvCalls((...call) => this.call(...call));
  readonly states = new StateCalls((...call) => this.call(...call));
  readonly files: FileCalls;

  constructor(options: SandpoolClientOptions) {
    super();
    this.#server = new URL(options.server);
    this.#exchanges = new HttpExchanges(this.#server, options.apiKey, reportsOf(options));
    this.files = new FileCalls((...call) => this.call(...call), this.#exchanges);
    this.#clusterId = options.clusterId ?? 'local';
    this.#namespace = options.namespace;
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
  }

  async claimSandbox(request: ClaimRequest, options?: CallOptions): Promise<Sandbox> {
    const deadlineMs = (request.waitTimeoutSeconds ?? 0) * 1_000 + this.#deadlineMs;
    return (await this.call('claimSandbox', { body: request }, { deadlineMs, ...options })).sandbox;
  }

  async getSandbox(sandboxId: string, options?: CallOptions): Promise<Sandbox> {
    return (await this.call('getSandbox', { params: { sandboxId } }, options)).sandbox;
  }

  async listSandboxes(filter: SandboxFilter = {}, options?: CallOptions): Promise<Page<Sandbox>> {
    return await this.call('listSandboxes', { query: filter }, options);
  }

  async deleteSandbox(sandboxId: string, options?: CallOptions): Promise<SandboxDeletion> {
    return await this.call('deleteSandbox', { params: { sandboxId } }, options);
  }

  /** `idleTimeout` as text such as `30m`; `0` switches it off. */
  async setIdleTimeout(
    sandboxId: string,
    idleTimeout: string,
    options?: CallOptions,
  ): Promise<Sandbox> {
    return (
      await this.call('setIdleTimeout', { params: { sandboxId }, body: { idleTimeout } }, options)
    ).sandbox;
  }

  async exec(sandboxId: string, request: ExecRequest, options?: CallOptions): Promise<ExecResult> {
    const deadlineMs = (request.timeoutSeconds ?? MAX_EXEC_SECONDS) * 1_000 + this.#deadlineMs;
    return await this.call(
      'execInSandbox',
      { params: { sandboxId }, body: request },
      { deadlineMs, ...options },
    );
  }

  /** The end of what a sandbox printed. */
  async logs(
    sandboxId: string,
    query: LogsQuery = {},
    options?: CallOptions,
  ): Promise<SandboxLogs> {
    return await this.call('getSandboxLogs', { params: { sandboxId }, query }, options);
  }

  /**
   * Yields the end of what a sandbox printed, and then what it goes on to print, until `end`.
   * Without an `end` event the service has ended the stream, and can be asked again.
   */
  async *followLogs(
    sandboxId: string,
    query: LogsQuery = {},
    options: FollowOptions = {},
  ): AsyncGenerator<LogEvent, void, undefined> {
    for await (const { event, id = '', data } of await this.#opened(
      'getSandboxLogs',
      { params: { sandboxId }, query: { ...query, follow: true } },
      options,
    )) {
      if (event === 'message')
        yield {
          type: 'line',
          id,
          ...(data as { line: string; timestamp?: string; partial?: boolean }),
        };
      else if (event === 'reset' || event === 'end') yield { type: event };
    }
  }

  /** Lists what happened to a sandbox, the last 50 events, the oldest first. */
  async events(sandboxId: string, options?: CallOptions): Promise<EventList> {
    return await this.call('listSandboxEvents', { params: { sandboxId } }, options);
  }

  /** Lists what happened to a pool, the last 50 events, the oldest first. */
  async poolEvents(name: string, options?: CallOptions): Promise<EventList> {
    return await this.call('listPoolEvents', { params: { name } }, options);
  }

  /**
   * Yields what happens to the caller's sandboxes and pools from now on, or after `lastEventId`;
   * with `all`, for admins, to everybody's. `open` comes first: nothing is missed after it. Of a
   * manager `cluster` says that a cluster is not heard, or is again.
   */
  async *followEvents(
    filter: { readonly all?: boolean; readonly clusterID?: string } = {},
    options: FollowOptions = {},
  ): AsyncGenerator<FollowedEvent, void, undefined> {
    const query = { ...filter, begin: true };
    const events = await this.#opened('followEvents', { query }, options);
    yield { type: 'open' };
    for await (const { event, id = '', data } of events) {
      if (event === 'message') yield { type: 'event', id, event: data as Event };
      else if (event === 'begin') yield { type: event, id };
      else if (event === 'reset') yield { type: event, ...(data as { clusterID?: string }) };
      else if (event === 'cluster')
        yield { type: event, ...(data as { clusterID: string; incomplete: boolean }) };
    }
  }

  /** A single-use token of 30 seconds. */
  async createExecToken(sandboxId: string, options?: CallOptions): Promise<string> {
    return (await this.call('createExecToken', { params: { sandboxId } }, options)).token;
  }

  /** A shell in a Running sandbox. */
  async terminal(
    sandboxId: string,
    size: { readonly cols: number; readonly rows: number },
  ): Promise<TerminalConnection> {
    // a WebSocket library that other calls do not need
    const { openTerminal } = await import('./open-terminal.ts');
    const token = await this.createExecToken(sandboxId);
    const dot = sandboxId.indexOf('.');
    const clusterId = dot > 0 ? sandboxId.slice(0, dot) : this.#clusterId;
    return await openTerminal({
      server: this.#server,
      clusterId,
      sandboxId,
      token,
      ...size,
      deadlineMs: this.#deadlineMs,
    });
  }

  async createPool(request: CreatePoolRequest, options?: CallOptions): Promise<Pool> {
    return (await this.call('createPool', { body: request }, options)).template;
  }

  async getPool(name: string, options?: CallOptions): Promise<Pool> {
    return (await this.call('getPool', { params: { name } }, options)).template;
  }

  async listPools(filter: PoolFilter = {}, options?: CallOptions): Promise<Page<Pool>> {
    return await this.call('listPools', { query: filter }, options);
  }

  async updatePool(name: string, change: PoolChange, options?: CallOptions): Promise<Pool> {
    return (await this.call('updatePool', { params: { name }, body: change }, options)).template;
  }

  /** With `force` its running sandboxes end too. */
  async deletePool(
    name: string,
    { force = false, ...options }: CallOptions & { readonly force?: boolean } = {},
  ): Promise<PoolDeletion> {
    return await this.call(
      'deletePool',
      { params: { name }, query: force ? { force } : {} },
      options,
    );
  }

  /** Takes its template over as it is now; needed only without `autoUpdate`. */
  async syncPool(name: string, options?: CallOptions): Promise<Pool> {
    return (await this.call('syncPool', { params: { name } }, options)).template;
  }

  /** Shows what `syncPool` would apply; writes nothing. */
  async previewPoolSync(name: string, options?: CallOptions): Promise<PoolSyncPreview> {
    return await this.call('previewPoolSync', { params: { name } }, options);
  }

  async listTemplates(filter: TemplateFilter = {}, options?: CallOptions): Promise<Page<Template>> {
    return await this.call('listTemplates', { query: filter }, options);
  }

  async getTemplate(name: string, of: OfCluster = {}, options?: CallOptions): Promise<Template> {
    return (await this.call('getTemplate', { params: { name }, query: of }, options)).template;
  }

  /** Needs a key with the admin role, as the next two do. */
  async createTemplate(request: TemplateRequest, options?: CallOptions): Promise<Template> {
    return (await this.call('createTemplate', { body: request }, options)).template;
  }

  async updateTemplate(
    name: string,
    change: TemplateChange,
    options?: CallOptions,
  ): Promise<Template> {
    return (await this.call('updateTemplate', { params: { name }, body: change }, options))
      .template;
  }

  async deleteTemplate(name: string, options?: CallOptions): Promise<TemplateDeletion> {
    return await this.call('deleteTemplate', { params: { name } }, options);
  }

  /** Rejects with an ApiError of status 503 while the daemon is not ready. */
  async readiness(options?: CallOptions): Promise<Readiness> {
    return await this.call('getReadiness', {}, options);
  }

  /** Lets go of its idle connections. */
  close(): void {
    this.#exchanges.close();
  }

  async #opened<K extends OperationId>(
    id: K,
    input: OperationInput<K>,
    { signal, lastEventId }: FollowOptions,
  ): Promise<AsyncGenerator<ReceivedEvent, void, undefined>> {
    const asked = operationRequest(id, input);
    const more = { deadlineMs: this.#deadlineMs, signal, accept: 'text/event-stream', lastEventId };
    return this.#received(await this.#exchanges.open({ ...asked, ...more }), signal);
  }

  async *#received(
    response: IncomingMessage,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ReceivedEvent, void, undefined> {
    try {
      yield* readServerEvents(response);
    } catch (error) {
      signal?.throwIfAborted();
      throw asConnectionFailure(error, this.#server);
    }
  }

  protected override async call<K extends OperationId>(
    id: K,
    input: OperationInput<K>,
    { deadlineMs = this.#deadlineMs, signal }: CallOptions & { readonly deadlineMs?: number } = {},
  ): Promise<OperationAnswer<K>> {
    return (await this.#exchanges.call({
      ...operationRequest(id, input, this.#namespace),
      deadlineMs,
      signal,
    })) as OperationAnswer<K>;
  }
}

const reportsOf = ({ onWarning, onApproval }: SandpoolClientOptions): ExchangeReports => ({
  warn: onWarning,
  onApproval,
});

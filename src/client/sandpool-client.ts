import { asConnectionFailure, HttpExchanges } from './http-exchange.ts';
import { type OperationAnswer, type OperationId, type OperationInput, operationRequest } from './operation-request.ts';
import { readServerEvents, type ReceivedEvent } from './server-events.ts';
import type { TerminalConnection } from './terminal-connection.ts';
import type {
  AdminApiKeyRequest, ApiKey, ApiKeyDeletion, ApiKeyRequest, ClaimRequest, CreatePoolRequest, Event, EventList, ExecRequest, ExecResult, FollowedEvent, IssuedApiKey, LogEvent, LogsQuery, Page,
  PageRequest, Pool, PoolChange, PoolDeletion, PoolFilter, Readiness, Sandbox, SandboxDeletion, SandboxFilter, SandboxLogs,
} from './wire.ts';

export interface SandpoolClientOptions {
  /** The daemon's address, such as `http://127.0.0.1:8080`. */
  readonly server: string | URL;
  readonly apiKey: string;
  /** Of a sandbox whose id names no cluster; `local` unless told. */
  readonly clusterId?: string;
  /** Milliseconds that a call may take; 30 s unless told. A command gets its own time on top. */
  readonly deadlineMs?: number;
}

export interface CallOptions {
  /** Gives the call up; what was asked may still happen. */
  readonly signal?: AbortSignal;
}

export interface FollowOptions extends CallOptions {
  /** The id of the last event that was received: go on after it. */
  readonly lastEventId?: string;
}

const DEADLINE_MS = 30_000;
const MAX_EXEC_SECONDS = 300;

/**
 * The service's operations, one method each. Every call ends by its deadline. Rejects with ApiError for an answer that
 * says no, with ConnectionFailed where there was none. Nothing is tried again here.
 */
export class SandpoolClient {
  readonly #server: URL;
  readonly #exchanges: HttpExchanges;
  readonly #clusterId: string;
  readonly #deadlineMs: number;

  constructor(options: SandpoolClientOptions) {
    this.#server = new URL(options.server);
    this.#exchanges = new HttpExchanges(this.#server, options.apiKey);
    this.#clusterId = options.clusterId ?? 'local';
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
  }

  async claimSandbox(request: ClaimRequest, options?: CallOptions): Promise<Sandbox> {
    return (await this.#call('claimSandbox', { body: request }, options)).sandbox;
  }

  async getSandbox(sandboxId: string, options?: CallOptions): Promise<Sandbox> {
    return (await this.#call('getSandbox', { params: { sandboxId } }, options)).sandbox;
  }

  async listSandboxes(filter: SandboxFilter = {}, options?: CallOptions): Promise<Page<Sandbox>> {
    return await this.#call('listSandboxes', { query: filter }, options);
  }

  async deleteSandbox(sandboxId: string, options?: CallOptions): Promise<SandboxDeletion> {
    return await this.#call('deleteSandbox', { params: { sandboxId } }, options);
  }

  /** `idleTimeout` as text such as `30m`; `0` switches it off. */
  async setIdleTimeout(sandboxId: string, idleTimeout: string, options?: CallOptions): Promise<Sandbox> {
    return (await this.#call('setIdleTimeout', { params: { sandboxId }, body: { idleTimeout } }, options)).sandbox;
  }

  async exec(sandboxId: string, request: ExecRequest, options?: CallOptions): Promise<ExecResult> {
    const deadlineMs = (request.timeoutSeconds ?? MAX_EXEC_SECONDS) * 1_000 + this.#deadlineMs;
    return await this.#call('execInSandbox', { params: { sandboxId }, body: request }, { deadlineMs, ...options });
  }

  /** The end of what a sandbox printed. */
  async logs(sandboxId: string, query: LogsQuery = {}, options?: CallOptions): Promise<SandboxLogs> {
    return await this.#call('getSandboxLogs', { params: { sandboxId }, query }, options);
  }

  /** The same and then what it prints, until `end`; without that the service has ended the stream, and can be asked again. */
  async *followLogs(sandboxId: string, query: LogsQuery = {}, options: FollowOptions = {}): AsyncGenerator<LogEvent, void, undefined> {
    for await (const { event, id = '', data } of this.#stream('getSandboxLogs', { params: { sandboxId }, query: { ...query, follow: true } }, options)) {
      if (event === 'message') yield { type: 'line', id, ...(data as { line: string; timestamp?: string; partial?: boolean }) };
      else if (event === 'reset' || event === 'end') yield { type: event };
    }
  }

  /** What happened to a sandbox, the last 50, the oldest first. */
  async events(sandboxId: string, options?: CallOptions): Promise<EventList> {
    return await this.#call('listSandboxEvents', { params: { sandboxId } }, options);
  }

  /** What happens to the caller's sandboxes and pools from now on, or after `lastEventId`; with `all`, which is an admin's, to everybody's. */
  async *followEvents(filter: { readonly all?: boolean } = {}, options: FollowOptions = {}): AsyncGenerator<FollowedEvent, void, undefined> {
    for await (const { event, id = '', data } of this.#stream('followEvents', { query: filter }, options)) {
      if (event === 'message') yield { type: 'event', id, event: data as Event };
      else if (event === 'reset') yield { type: 'reset' };
    }
  }

  /** A single-use token of 30 seconds. */
  async createExecToken(sandboxId: string, options?: CallOptions): Promise<string> {
    return (await this.#call('createExecToken', { params: { sandboxId } }, options)).token;
  }

  /** A shell in a Running sandbox. */
  async terminal(sandboxId: string, size: { readonly cols: number; readonly rows: number }): Promise<TerminalConnection> {
    const { openTerminal } = await import('./open-terminal.ts'); // a WebSocket library that other calls do not need
    const token = await this.createExecToken(sandboxId);
    const dot = sandboxId.indexOf('.');
    const clusterId = dot > 0 ? sandboxId.slice(0, dot) : this.#clusterId;
    return await openTerminal({ server: this.#server, clusterId, sandboxId, token, ...size, deadlineMs: this.#deadlineMs });
  }

  async createPool(request: CreatePoolRequest, options?: CallOptions): Promise<Pool> {
    return (await this.#call('createPool', { body: request }, options)).template;
  }

  async getPool(name: string, options?: CallOptions): Promise<Pool> {
    return (await this.#call('getPool', { params: { name } }, options)).template;
  }

  async listPools(filter: PoolFilter = {}, options?: CallOptions): Promise<Page<Pool>> {
    return await this.#call('listPools', { query: filter }, options);
  }

  async updatePool(name: string, change: PoolChange, options?: CallOptions): Promise<Pool> {
    return (await this.#call('updatePool', { params: { name }, body: change }, options)).template;
  }

  /** With `force` its running sandboxes end too. */
  async deletePool(name: string, { force = false, ...options }: CallOptions & { readonly force?: boolean } = {}): Promise<PoolDeletion> {
    return await this.#call('deletePool', { params: { name }, query: force ? { force } : {} }, options);
  }

  async createApiKey(request: ApiKeyRequest = {}, options?: CallOptions): Promise<IssuedApiKey> {
    return await this.#call('createApiKey', { body: request }, options);
  }

  /** Needs a key with the admin role. */
  async createApiKeyForTenant(request: AdminApiKeyRequest, options?: CallOptions): Promise<IssuedApiKey> {
    return await this.#call('createApiKeyForTenant', { body: request }, options);
  }

  async listApiKeys(page: PageRequest = {}, options?: CallOptions): Promise<Page<ApiKey>> {
    return await this.#call('listApiKeys', { query: page }, options);
  }

  /** Needs a key with the admin role, as the next but one does. */
  async listAllApiKeys(page: PageRequest = {}, options?: CallOptions): Promise<Page<ApiKey>> {
    return await this.#call('listAllApiKeys', { query: page }, options);
  }

  async deleteApiKey(keyId: string, options?: CallOptions): Promise<ApiKeyDeletion> {
    return await this.#call('deleteApiKey', { params: { keyId } }, options);
  }

  /** `{namespace}/{shortName}` */
  async deleteApiKeyByName(name: string, options?: CallOptions): Promise<ApiKeyDeletion> {
    return await this.#call('deleteApiKeyByName', { params: { name } }, options);
  }

  /** Rejects with an ApiError of status 503 while the daemon is not ready. */
  async readiness(options?: CallOptions): Promise<Readiness> {
    return await this.#call('getReadiness', {}, options);
  }

  /** Lets go of its idle connections. */
  close(): void {
    this.#exchanges.close();
  }

  async *#stream<K extends OperationId>(id: K, input: OperationInput<K>, { signal, lastEventId }: FollowOptions): AsyncGenerator<ReceivedEvent, void, undefined> {
    const exchange = { ...operationRequest(id, input), deadlineMs: this.#deadlineMs, signal, accept: 'text/event-stream', lastEventId };
    const response = await this.#exchanges.open(exchange);
    try {
      yield* readServerEvents(response);
    } catch (error) {
      signal?.throwIfAborted();
      throw asConnectionFailure(error, this.#server);
    }
  }

  async #call<K extends OperationId>(
    id: K, input: OperationInput<K>, { deadlineMs = this.#deadlineMs, signal }: CallOptions & { readonly deadlineMs?: number } = {},
  ): Promise<OperationAnswer<K>> {
    return (await this.#exchanges.call({ ...operationRequest(id, input), deadlineMs, signal })) as OperationAnswer<K>;
  }
}

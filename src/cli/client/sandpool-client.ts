import { readEvents, type StreamEvent, type StreamId } from './event-stream.ts';
import {
  asConnectionFailure,
  type Download,
  type Exchange,
  HttpExchanges,
  type Upload,
} from './http-exchange.ts';
import {
  type Answer,
  type Input,
  type OperationId,
  operationRequest,
} from './operation-request.ts';
import type { TerminalConnection, TerminalSize } from './terminal-connection.ts';
import { type AwaitedApproval, sentAgain, untilApproved } from './until-approved.ts';

export interface SandpoolClientOptions {
  /** The daemon's address, such as `http://127.0.0.1:8080`. */
  readonly server: string | URL;
  readonly apiKey: string;
  /**
   * The namespace of the pools and envs that calls name; the key's own unless given. Another
   * namespace needs a key with the admin role.
   */
  readonly namespace?: string;
  /** Milliseconds that a call may take; 30 s unless given. A command gets its own time on top. */
  readonly deadlineMs?: number;
  /** Receives what an answer warns of, such as an unknown field. */
  readonly onWarning?: (text: string) => void;
  /**
   * Receives each request that a person must approve: the client waits for that, and repeats the
   * identical request. Without it such a call rejects with APPROVAL_REQUIRED.
   */
  readonly onApproval?: (approval: AwaitedApproval) => void;
}

export interface CallOptions {
  /** Gives the call up; the service may still do what was asked. */
  readonly signal?: AbortSignal;
}

export interface StreamOptions extends CallOptions {
  /** The id of the last event that was received: go on after it. */
  readonly lastEventId?: string;
}

type Optional<T> = Partial<T> extends T ? [input?: T] : [input: T];

const DEADLINE_MS = 30_000;

/** Milliseconds on top of the deadline, of operations that take their time. */
const MORE_MS: { readonly [K in OperationId]?: (input: Input<K>) => number } = {
  claimSandbox: ({ body }) => (body.waitTimeoutSeconds ?? 0) * 1_000,
  execInSandbox: ({ body }) => (body.timeoutSeconds ?? 300) * 1_000,
  // a stream that stands still; the service gives up a little earlier
  readFile: () => 60_000,
  writeFile: () => 60_000,
  listFiles: () => 60_000,
  // a tree may have very many entries
  removeFile: () => 570_000,
};

/**
 * Calls the service's operations, by the names that the OpenAPI document gives them. Every call
 * ends by its deadline. Rejects with ApiError if the service says no, with ConnectionFailed if
 * there was no answer. It repeats nothing except a request that waits for a person.
 */
export class SandpoolClient {
  readonly #server: URL;
  readonly #exchanges: HttpExchanges;
  readonly #namespace: string | undefined;
  readonly #deadlineMs: number;
  readonly #onApproval: ((approval: AwaitedApproval) => void) | undefined;

  constructor({ server, apiKey, namespace, deadlineMs, ...reports }: SandpoolClientOptions) {
    this.#server = new URL(server);
    this.#exchanges = new HttpExchanges(this.#server, apiKey, reports.onWarning);
    this.#namespace = namespace;
    this.#deadlineMs = deadlineMs ?? DEADLINE_MS;
    this.#onApproval = reports.onApproval;
  }

  async call<K extends OperationId>(
    id: K,
    ...[input]: Optional<Input<K> & CallOptions>
  ): Promise<Answer<K>> {
    const exchange = this.#exchange(id, input);
    return (await this.#approved(exchange, (each) => this.#exchanges.call(each))) as Answer<K>;
  }

  /**
   * Resolves when the stream is open; the deadline is for that only. Yields events of later
   * versions of the service too. A stream that the service ends may be opened again.
   */
  async stream<K extends StreamId>(
    id: K,
    ...[input]: Optional<Input<K> & StreamOptions>
  ): Promise<AsyncGenerator<StreamEvent<K>, void, undefined>> {
    const exchange = { ...this.#exchange(id, input), accept: 'text/event-stream' };
    const response = await this.#approved(exchange, (each) => this.#exchanges.open(each));
    return readEvents<K>(response, (error) => {
      exchange.signal?.throwIfAborted();
      throw asConnectionFailure(error, this.#server);
    });
  }

  /** Opens an answer of any length, read no faster than it is taken. */
  async download<K extends OperationId>(
    id: K,
    accept: string,
    input: Input<K> & CallOptions,
  ): Promise<Download> {
    const exchange = { ...this.#exchange(id, input), accept };
    return await this.#approved(exchange, (each) => this.#exchanges.download(each));
  }

  /** Sends content of any length no faster than it is taken. */
  async upload<K extends OperationId>(
    id: K,
    input: Omit<Input<K>, 'body'> & CallOptions,
    { content, contentType }: Upload,
  ): Promise<Answer<K>> {
    const again = this.#onApproval ? sentAgain(content) : () => content;
    return (await this.#approved(this.#exchange(id, input as Input<K>), (each) =>
      this.#exchanges.upload({ ...each, content: again(), contentType }),
    )) as Answer<K>;
  }

  /** Opens a shell in a Running sandbox. */
  async terminal(sandboxId: string, size: TerminalSize): Promise<TerminalConnection> {
    // a WebSocket library that other calls do not need
    const { openTerminal } = await import('./terminal-connection.ts');
    const { token } = await this.call('createExecToken', { params: { sandboxId } });
    const where = { server: this.#server, sandboxId, deadlineMs: this.#deadlineMs };
    return await openTerminal({ ...where, ...size, token });
  }

  /** Closes its idle connections. */
  close(): void {
    this.#exchanges.close();
  }

  #exchange<K extends OperationId>(id: K, input?: Input<K> & StreamOptions): Exchange {
    const { signal, lastEventId }: StreamOptions = input ?? {};
    const moreMs = (input && MORE_MS[id]?.(input)) ?? 0;
    return {
      ...operationRequest(id, input, this.#namespace),
      ...{ signal, lastEventId },
      deadlineMs: this.#deadlineMs + moreMs,
    };
  }

  async #approved<T>(exchange: Exchange, send: (exchange: Exchange) => Promise<T>): Promise<T> {
    return this.#onApproval
      ? await untilApproved(exchange, send, this.#onApproval)
      : await send(exchange);
  }
}

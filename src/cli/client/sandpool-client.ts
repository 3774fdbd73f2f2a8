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
  readonly server: string | URL;
  readonly apiKey: string;
  /** By default the key's own. Another one needs an admin's key. */
  readonly namespace?: string;
  /** In ms; 30 s by default. Commands get their own time on top. */
  readonly deadlineMs?: number;
  /** Such as an unknown field. */
  readonly onWarning?: (text: string) => void;
  /** The client waits and repeats the request. Without it, calls reject with APPROVAL_REQUIRED. */
  readonly onApproval?: (approval: AwaitedApproval) => void;
}

export interface CallOptions {
  /** The request may still take effect. */
  readonly signal?: AbortSignal;
}

export interface StreamOptions extends CallOptions {
  /** The stream resumes after this event. */
  readonly lastEventId?: string;
}

type Optional<T> = Partial<T> extends T ? [input?: T] : [input: T];

const DEADLINE_MS = 30_000;

/** In ms. */
const MORE_MS: { readonly [K in OperationId]?: (input: Input<K>) => number } = {
  claimSandbox: ({ body }) => (body.waitTimeoutSeconds ?? 0) * 1_000,
  execInSandbox: ({ body }) => (body.timeoutSeconds ?? 300) * 1_000,
  // the service closes a stalled stream a little earlier
  readFile: () => 60_000,
  writeFile: () => 60_000,
  listFiles: () => 60_000,
  // a folder may have very many entries
  removeFile: () => 570_000,
};

/**
 * Rejects with ApiError if the service refuses, and with ConnectionFailed if it does not answer.
 * Retries only requests that wait for approval.
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

  /** The deadline applies until the stream is open. Also yields events of later versions. */
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

  async download<K extends OperationId>(
    id: K,
    accept: string,
    input: Input<K> & CallOptions,
  ): Promise<Download> {
    const exchange = { ...this.#exchange(id, input), accept };
    return await this.#approved(exchange, (each) => this.#exchanges.download(each));
  }

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

  async terminal(sandboxId: string, size: TerminalSize): Promise<TerminalConnection> {
    // loads the WebSocket library only when needed
    const { openTerminal } = await import('./terminal-connection.ts');
    const { token } = await this.call('createExecToken', { params: { sandboxId } });
    const where = { server: this.#server, sandboxId, deadlineMs: this.#deadlineMs };
    return await openTerminal({ ...where, ...size, token });
  }

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

import { Pool, type Dispatcher } from 'undici';
import { WRITE_MS } from '../../contracts/coordination/quotas.ts';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { JoinedReads } from '../../lib/joined-reads.ts';
import { ApiRefused, ApiUnreachable, refusedBy } from './api-errors.ts';
import { exchange, type Answer, type AnswerHeaders, type Exchange } from './api-exchange.ts';
import { ConnectionPermits } from './connection-permits.ts';
import { kindIn, namespaceIn, queryText } from './request-target.ts';
import { watchLines } from './watch-stream.ts';
import type {
  CallOptions,
  WriteOptions,
  ListOptions,
  Removal,
  ListQuery,
  WatchQuery,
  WatchEvent,
  ApiClient,
  LaneName,
  ApiServer,
  ApiServerDeps,
} from './api-calls.ts';

/**
 * A namespace has at most seven in eight of `claims` and `background`, or half (see
 * ConnectionPermits). Each kind's watch holds one, and that of the Pods of each team's namespace.
 */
const CONNECTIONS: Readonly<Record<LaneName, number>> = {
  claims: 36,
  background: 18,
  watches: 1_024,
};

const MOST_WAITING = 4_096;

const DEFAULT_DEADLINE_MS = 5_000;

const CONNECT_TIMEOUT_MS = 3_000;

/** Load balancers commonly close after a minute, the API server after 90 s. */
const KEEP_ALIVE_MS = 50_000;

/** Refill goes on after this time, or a steady stream of claims would find nothing. */
const CALM_MS = 1_000;

const JSON_TYPE = 'application/json';

const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';

const WATCH_SILENCE_MS = 35_000;

export const apiServer = (deps: ApiServerDeps): ApiServer => {
  const lanes = {
    claims: new Lane(deps, CONNECTIONS.claims),
    background: new Lane(deps, CONNECTIONS.background),
    watches: new Lane(deps, CONNECTIONS.watches),
  };
  return {
    lane: (name) => lanes[name],
    calm: (name) => lanes[name].turns.untilIdleEnough(CALM_MS),
    close: async () => {
      await Promise.all(Object.values(lanes).map((lane) => lane.close()));
    },
  };
};

class Lane implements ApiClient {
  readonly turns: ConnectionPermits;
  readonly #deps: ApiServerDeps;
  readonly #pool: Dispatcher;
  readonly #prefix: string;
  readonly #agent: string;
  readonly #gets = new JoinedReads();

  constructor(deps: ApiServerDeps, connections: number) {
    const { server, tls } = deps.access;
    this.#deps = deps;
    this.#prefix = server.pathname.replace(/\/$/, '');
    this.#agent = `sandpool/${deps.version}`;
    this.turns = new ConnectionPermits(connections, MOST_WAITING);
    this.#pool = new Pool(server.origin, {
      connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { ...tls, timeout: CONNECT_TIMEOUT_MS },
    });
  }

  get(path: string, { query, deadlineMs }: CallOptions = {}): Promise<unknown> {
    const whole = path + queryText(query);
    return this.#gets.read(`${deadlineMs} ${whole}`, () => this.#read(whole, deadlineMs));
  }

  list(
    path: string,
    query: ListQuery,
    { deadlineMs, metadataOnly = false }: ListOptions = {},
  ): Promise<unknown> {
    return this.#read(
      path + queryText({ ...query }),
      deadlineMs,
      metadataOnly ? METADATA_ONLY : JSON_TYPE,
    );
  }

  create(path: string, body: object, options: WriteOptions = {}): Promise<unknown> {
    return this.#write({ method: 'POST', path, body, type: 'application/json', options });
  }

  replace(path: string, body: object, options: WriteOptions = {}): Promise<unknown> {
    return this.#write({ method: 'PUT', path, body, type: 'application/json', options });
  }

  patch(path: string, body: object, options: CallOptions = {}): Promise<unknown> {
    const type = 'application/merge-patch+json';
    return this.#write({ method: 'PATCH', path, body, type, options });
  }

  remove(
    path: string,
    { dryRun = false, ...removal }: Removal = {},
    options: CallOptions = {},
  ): Promise<unknown> {
    const { uid, resourceVersion, gracePeriodSeconds, propagationPolicy } = removal;
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...(dryRun && { dryRun: ['All'] }),
      gracePeriodSeconds,
      propagationPolicy,
      preconditions: { uid, resourceVersion },
    };
    return this.#write({ method: 'DELETE', path, body, type: 'application/json', options });
  }

  async *watch(path: string, query: WatchQuery, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const { silenceMs = WATCH_SILENCE_MS, ...rest } = query;
    const sentAt = performance.now();
    const lines = watchLines(this.#pool, {
      path: this.#prefix + path + queryText({ ...rest, watch: true, allowWatchBookmarks: true }),
      headers: this.#headers(),
      deadlineMs: DEFAULT_DEADLINE_MS,
      silenceMs,
      signal,
      answered: (headers) => {
        this.#noteDate(headers, sentAt);
      },
    });
    for await (const line of lines) yield watchEventOf(path, line);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #read(
    path: string,
    deadlineMs = DEFAULT_DEADLINE_MS,
    accept = JSON_TYPE,
  ): Promise<unknown> {
    const began = performance.now();
    try {
      return await this.#settle({ method: 'GET', path, deadlineMs }, { accept });
    } catch (error) {
      // The other end may have closed a kept connection just before its use: retries on a new one.
      const left = deadlineMs - (performance.now() - began);
      if (!(error instanceof ApiUnreachable) || !isCut(error.cause) || left <= 0) throw error;
      return await this.#settle({ method: 'GET', path, deadlineMs: left }, { accept });
    }
  }

  async #write({
    method,
    path,
    body,
    type,
    options,
  }: {
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    path: string;
    body: object;
    type: string;
    options: WriteOptions;
  }): Promise<unknown> {
    const { query: asked, deadlineMs = DEFAULT_DEADLINE_MS, permitted } = options;
    const query = permitted ? { ...asked, timeout: `${WRITE_MS}ms` } : asked;
    try {
      return await this.#settle(
        {
          method,
          path: path + queryText(query),
          body: JSON.stringify(body),
          deadlineMs,
          permission: permitted ? { permitted, answeredWithinMs: WRITE_MS } : undefined,
        },
        { 'content-type': type },
      );
    } catch (error) {
      if (error instanceof ApiUnreachable || (error instanceof ApiRefused && error.status >= 500))
        throw new OutcomeUnknown(error.message, { cause: error });
      throw error;
    }
  }

  async #settle(
    wanted: Omit<Exchange, 'headers'>,
    headers: Readonly<Record<string, string>>,
  ): Promise<unknown> {
    const { metrics, traceScope } = this.#deps;
    const about = { store: 'api-server', operation: `${wanted.method} ${kindIn(wanted.path)}` };
    const began = performance.now();
    const call = traceScope?.current()?.call(about.operation);
    try {
      const answered = await this.#answered(
        wanted,
        call ? { ...headers, traceparent: call.traceparent } : headers,
      );
      call?.ended('good', {});
      return answered;
    } catch (error) {
      if (!(error instanceof ApiRefused) || error.status >= 500 || error.status === 429)
        metrics.count('sandpool_store_failures_total', about);
      call?.ended(
        'failed',
        error instanceof ApiRefused ? { 'http.response.status_code': error.status } : {},
      );
      throw error;
    } finally {
      metrics.observe('sandpool_store_seconds', about, (performance.now() - began) / 1_000);
    }
  }

  async #answered(
    wanted: Omit<Exchange, 'headers'>,
    headers: Readonly<Record<string, string>>,
  ): Promise<unknown> {
    const turn = await this.turns.acquire(namespaceIn(wanted.path), wanted.deadlineMs);
    const sentAt = performance.now();
    let answer: Answer;
    try {
      answer = await exchange(this.#pool, {
        ...wanted,
        path: this.#prefix + wanted.path,
        headers: this.#headers(headers),
        deadlineMs: wanted.deadlineMs - turn.waitedMs,
      });
    } finally {
      turn.release();
    }
    this.#noteDate(answer.headers, sentAt);
    if (answer.status < 400)
      return parsed(answer, `${wanted.method} ${wanted.path.split('?', 1)[0] ?? ''}`);
    if (answer.status === 401) this.#deps.access.rejected();
    const retryAfter = answer.headers['retry-after'];
    throw refusedBy(
      answer.status,
      answer.body,
      typeof retryAfter === 'string' ? retryAfter : undefined,
    );
  }

  #headers(given: Readonly<Record<string, string>> = {}): Record<string, string> {
    const headers: Record<string, string> = {
      accept: JSON_TYPE,
      'user-agent': this.#agent,
      ...given,
    };
    const authorization = this.#deps.access.authorization();
    if (authorization !== undefined) headers['authorization'] = authorization;
    return headers;
  }

  #noteDate({ date }: AnswerHeaders, sentAt: number): void {
    if (typeof date === 'string') this.#deps.clock?.observe(date, sentAt);
  }
}

/** An answer other than JSON came from a proxy, so the effect is unknown. */
const parsed = ({ body }: Answer, what: string): unknown => {
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    throw new ApiUnreachable(`${what}: the answer is not JSON`, { cause: error });
  }
};

const CUT_CODES = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

const isCut = (cause: unknown): boolean =>
  typeof cause === 'object' &&
  cause !== null &&
  'code' in cause &&
  typeof cause.code === 'string' &&
  CUT_CODES.has(cause.code);

const isWatchEvent = (event: {
  readonly type?: unknown;
  readonly object?: unknown;
}): event is WatchEvent =>
  event.type === 'ADDED' ||
  event.type === 'MODIFIED' ||
  event.type === 'DELETED' ||
  event.type === 'BOOKMARK';

const watchEventOf = (path: string, line: string): WatchEvent => {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch (error) {
    throw new ApiUnreachable(`watch ${path}: a line is not JSON`, { cause: error });
  }
  if (typeof event !== 'object' || event === null)
    throw new ApiUnreachable(`watch ${path}: a line is not an event`);
  const { type, object } = event as { readonly type?: unknown; readonly object?: unknown };
  if (type === 'ERROR') throw refusedBy(codeOf(object), JSON.stringify(object ?? null), undefined);
  if (!isWatchEvent(event)) throw new ApiUnreachable(`watch ${path}: an event has an unknown type`);
  return event;
};

const codeOf = (status: unknown): number => {
  const code: unknown =
    typeof status === 'object' && status !== null && 'code' in status ? status.code : undefined;
  return typeof code === 'number' && code >= 400 ? code : 500;
};

import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import { Permits } from '../../lib/permits.ts';
import { LoopShare } from '../../lib/streams/json-reader.ts';
import { AnswerLost, LinkBusy } from '../../model/fleet/cluster-refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { FleetOperations, WayToCluster } from '../replication/fleet-operations.ts';
import { LinkAgent, type LinkOptions } from '../link/link-channel.ts';
import { type AskedBeside, passedHeaders } from './passed-headers.ts';
import type { Context } from '../../http/reply/context.ts';
import { createHash } from 'node:crypto';
import { Refusal } from '../../model/refusals.ts';

/** Per link, and per tenant on it. */
const MOST_OF_LINK = 768;
const MOST_OF_TENANT = 256;
const SILENT_MS = 1_000;
/** Exceeds the wait of any operation, and the silence of event streams. */
const MOST_SILENT_MS = 330_000;
const MOST_KEPT = 256;
export const MAX_ANSWER_HEADER_BYTES = 16_384;

export interface PassedRequest extends AskedBeside {
  readonly way: WayToCluster;
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly signal: AbortSignal;
  readonly base?: string;
  /** Replaces the method with GET, and the request's own target. */
  readonly target?: string;
  /** If absent, only silence ends the answer. */
  readonly withinMs?: number;
}

/** Sends each request once: if the link breaks, the client must find out whether it took effect. */
export class Passing {
  readonly #agent = new LinkAgent(MOST_KEPT);
  readonly clock: Clock;
  readonly #permits = new Permits({ tenant: MOST_OF_TENANT, link: MOST_OF_LINK });
  readonly tokens: TokenOwners;
  readonly passed = new PassedRequests();
  readonly share = new LoopShare();

  constructor(clock: Clock) {
    this.clock = clock;
    this.tokens = new TokenOwners(clock);
  }

  stop(): void {
    this.#agent.destroy();
  }

  /** Counts a failure. */
  wayTo(fleet: Pick<FleetOperations, 'wayTo'>, clusterId: string): WayToCluster {
    try {
      return fleet.wayTo(clusterId);
    } catch (error) {
      this.passed.noteFailure(clusterId, error);
      throw error;
    }
  }

  /**
   * Resolves with the answer's head; its body streams. Rejects with CLUSTER_UNAVAILABLE if the link
   * breaks, within 3 s if it goes silent, and at once if it is full. After an abort, rejects with
   * AnswerLost if the request may still take effect.
   */
  async pass(passed: PassedRequest): Promise<IncomingMessage> {
    passed.signal.throwIfAborted();
    const over = this.hold(passed.way, tenantKey(passed.caller));
    return await this.passed.counted(passed.way.clusterId, {
      hasLeft: () => passed.signal.aborted,
      work: () => this.#sent(passed, over),
    });
  }

  /** Returns the release. Refuses with CLUSTER_UNAVAILABLE. */
  hold(way: WayToCluster, tenant: string): () => void {
    const { linkId: link } = way;
    return this.#permits.take({ tenant: `${link} ${tenant}`, link }, (kind, most) =>
      this.#busy(
        way,
        kind === 'tenant'
          ? `is already answering ${most} of your requests`
          : 'has too many requests in progress; try again',
      ),
    );
  }

  #busy({ clusterId }: WayToCluster, why: string): LinkBusy {
    this.passed.note(clusterId, 'unavailable');
    return new LinkBusy(clusterId, why);
  }

  /** Calls `silent` within 3 s of silence. Returns a function that stops. */
  lookAt(way: WayToCluster, silent: () => void): () => void {
    let callOffProbe = (): void => undefined;
    const look = (): (() => void) =>
      this.clock.at(this.clock.now() + SILENT_MS, () => {
        callOffProbe();
        callOffProbe = way.probe(silent);
        callOff = look();
      });
    let callOff = look();
    return () => {
      callOff();
      callOffProbe();
    };
  }

  async #sent(passed: PassedRequest, over: () => void): Promise<IncomingMessage> {
    let asked: ClientRequest;
    try {
      asked = this.#ask(passed);
    } catch (error) {
      over();
      throw error;
    }
    return await this.#answerTo(asked, passed, over);
  }

  #ask({ way, caller, request, ...given }: PassedRequest): ClientRequest {
    const method = (given.target === undefined && request.method) || 'GET';
    const target = (given.base ?? '') + (given.target ?? request.url ?? '/');
    const key = request.headers['idempotency-key'] ?? given.key ?? given.claimKey;
    const options: LinkOptions = {
      route: way,
      agent: this.#agent,
      method,
      path: target,
      maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
      headers: passedHeaders(request, {
        ...given,
        identity: way.identify(caller, {
          method,
          target,
          idempotencyKey: typeof key === 'string' ? key : undefined,
        }),
      }),
    };
    return httpRequest(options);
  }

  #answerTo(
    asked: ClientRequest,
    { way, body, signal, withinMs }: PassedRequest,
    over: () => void,
  ): Promise<IncomingMessage> {
    const onlyLooks = asked.method === 'GET' || asked.method === 'HEAD';
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        asked.destroy();
      };
      const callOff = this.lookAt(way, leave);
      const callOffWhole =
        withinMs === undefined
          ? () => undefined
          : this.clock.at(this.clock.now() + withinMs, leave);
      asked.setTimeout(MOST_SILENT_MS, leave);
      signal.addEventListener('abort', leave, { once: true });
      asked.once('close', () => {
        callOff();
        callOffWhole();
        signal.removeEventListener('abort', leave);
        over();
        reject(broken(way)); // no effect after an answer
      });
      asked.on('error', () => {
        reject(signal.aborted && onlyLooks ? (signal.reason as Error) : broken(way));
      });
      asked.once('response', (answer) => {
        callOff();
        if (hasSoundStatus(answer)) resolve(answer);
        else leave();
      });
      if (body === undefined) asked.end();
      else if (Buffer.isBuffer(body)) asked.end(body);
      else {
        // send the head now: the identity expires in seconds, and the client may send its body late
        asked.flushHeaders();
        body.on('error', (error) => asked.destroy(error));
        body.pipe(asked);
      }
    });
  }
}

export const hasSoundStatus = ({ statusCode = 0 }: IncomingMessage): boolean =>
  statusCode >= 200 && statusCode <= 599;

export const broken = ({ clusterId }: WayToCluster): AnswerLost => new AnswerLost(clusterId);

/** Undefined removes a parameter. */
export type Asked = Readonly<Record<string, string | number | undefined>>;

export const targetOf = (
  { querystring, path }: Pick<Context, 'querystring' | 'path'>,
  changed: Asked,
): string => {
  const query = new URLSearchParams(querystring);
  query.delete('clusterID');
  for (const [name, value] of Object.entries(changed))
    if (value === undefined) query.delete(name);
    else query.set(name, String(value));
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
};

/** Exceeds the lifetime of a token. */
const KEPT_MS = 60_000;
const MOST_TOKENS = 20_000;
/** Drops the cluster's oldest token. */
const MOST_OF_CLUSTER = 4_000;
/** A worker may send any text. */
const TOKEN = /^[\w-]{1,256}$/;

interface Owner {
  readonly caller: Caller;
  readonly endsAt: number;
}

/**
 * Owners of terminal tokens that other clusters issued. A token names no key, but its connection
 * must end with the owner's key and count against the owner's limits. Stores only hashes. No
 * cluster can use up another's capacity.
 */
export class TokenOwners {
  readonly #clock: Clock;
  /** By cluster, then by the token's hash; oldest first. */
  readonly #owners = new Map<string, Map<string, Owner>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False if the text is not a token. */
  remember(clusterId: string, token: unknown, caller: Caller): boolean {
    if (typeof token !== 'string' || !TOKEN.test(token)) return false;
    const now = this.#clock.now();
    for (const [each, tokens] of this.#owners) this.#forget(each, tokens, now);
    const tokens = this.#owners.get(clusterId) ?? new Map<string, Owner>();
    this.#owners.set(clusterId, tokens);
    const all = [...this.#owners.values()].sort((a, b) => b.size - a.size);
    if (tokens.size >= MOST_OF_CLUSTER) dropOldest(tokens);
    else if (all.reduce((sum, { size }) => sum + size, 0) >= MOST_TOKENS) dropOldest(all[0]);
    tokens.set(hashOf(token), { caller, endsAt: now + KEPT_MS });
    return true;
  }

  /** Undefined if this manager did not forward the token. */
  ownerOf(clusterId: string, token: string): Caller | undefined {
    return this.#owners.get(clusterId)?.get(hashOf(token))?.caller;
  }

  #forget(clusterId: string, tokens: Map<string, Owner>, now: number): void {
    for (const [oldest, { endsAt }] of tokens) {
      if (endsAt > now) break;
      tokens.delete(oldest);
    }
    if (tokens.size === 0) this.#owners.delete(clusterId);
  }
}

const dropOldest = (tokens: Map<string, Owner> | undefined): void => {
  const [oldest] = tokens?.keys() ?? [];
  if (oldest !== undefined) tokens?.delete(oldest);
};

const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64');

type PassedOutcome = 'answered' | 'unavailable';
export type PassedCounts = Readonly<Record<PassedOutcome, number>>;

const NONE: PassedCounts = { answered: 0, unavailable: 0 };

export class PassedRequests {
  /** Bounded by the number of clusters that have ever joined. */
  readonly #counts = new Map<string, PassedCounts>();

  of(clusterId: string): PassedCounts {
    return this.#counts.get(clusterId) ?? NONE;
  }

  note(clusterId: string, outcome: PassedOutcome): void {
    const counts = this.of(clusterId);
    this.#counts.set(clusterId, { ...counts, [outcome]: counts[outcome] + 1 });
  }

  /** Counts only CLUSTER_UNAVAILABLE. */
  noteFailure(clusterId: string, error: unknown): void {
    if (error instanceof Refusal && error.code === 'CLUSTER_UNAVAILABLE')
      this.note(clusterId, 'unavailable');
  }

  /** Ignores a failure after the client has left. */
  async counted<T>(
    clusterId: string,
    { hasLeft, work }: { readonly hasLeft: () => boolean; readonly work: () => Promise<T> },
  ): Promise<T> {
    try {
      const answer = await work();
      this.note(clusterId, 'answered');
      return answer;
    } catch (error) {
      if (!hasLeft()) this.noteFailure(clusterId, error);
      throw error;
    }
  }
}

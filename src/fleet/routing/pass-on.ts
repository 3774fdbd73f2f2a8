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

/** Requests under way over one link; and those of one tenant. */
const MOST_OF_LINK = 768;
const MOST_OF_TENANT = 256;
/** A link that gives no answer is looked at so often. */
const SILENT_MS = 1_000;
/** Longer than any operation waits, and event streams are silent. */
const MOST_SILENT_MS = 330_000;
const MOST_KEPT = 256;
export const MAX_ANSWER_HEADER_BYTES = 16_384;

export interface PassedRequest extends AskedBeside {
  readonly way: WayToCluster;
  readonly caller: Caller;
  readonly request: IncomingMessage;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Stands before the path of what is asked. */
  readonly base?: string;
  /** Names what is asked with GET, in place of what the request itself asks. */
  readonly target?: string;
  /** Bounds the whole answer, its body too; absent: it lasts while something of it comes. */
  readonly withinMs?: number;
}

/**
 * Passes requests on to other clusters, whose own servers answer them. Each is sent once: where a
 * link breaks, whether it took effect is for its client to find out.
 */
export class Passing {
  readonly #agent = new LinkAgent(MOST_KEPT);
  readonly clock: Clock;
  readonly #permits = new Permits({ tenant: MOST_OF_TENANT, link: MOST_OF_LINK });
  readonly tokens: TokenOwners;
  readonly passed = new PassedRequests();
  /** Shares out the event loop's time for reading what each cluster answers. */
  readonly share = new LoopShare();

  constructor(clock: Clock) {
    this.clock = clock;
    this.tokens = new TokenOwners(clock);
  }

  /** Lets go of connections that are kept. */
  stop(): void {
    this.#agent.destroy();
  }

  /** Finds the way of a client's request as FleetOperations.wayTo does. */
  wayTo(fleet: Pick<FleetOperations, 'wayTo'>, clusterId: string): WayToCluster {
    try {
      return fleet.wayTo(clusterId);
    } catch (error) {
      this.passed.noteFailure(clusterId, error);
      throw error;
    }
  }

  /**
   * Resolves with the head of the answer, whose body follows as it is read. Rejects with
   * CLUSTER_UNAVAILABLE where the link breaks before, within 3 s of its going silent, and where it
   * carries as much as it may. Once `signal` aborts it rejects with the reason of that, where
   * nothing was sent or it only looks, else with AnswerLost: it may take effect all the same.
   */
  async pass(passed: PassedRequest): Promise<IncomingMessage> {
    passed.signal.throwIfAborted();
    const over = this.hold(passed.way, tenantKey(passed.caller));
    return await this.passed.counted(passed.way.clusterId, {
      hasLeft: () => passed.signal.aborted,
      work: () => this.#sent(passed, over),
    });
  }

  /**
   * Takes one of the places that the link has for a tenant; returns the way to give it back, once.
   * Refuses with CLUSTER_UNAVAILABLE where there is none.
   */
  hold(way: WayToCluster, tenant: string): () => void {
    const { linkId: link } = way;
    return this.#permits.take({ tenant: `${link} ${tenant}`, link }, (kind, most) =>
      this.#busy(
        way,
        kind === 'tenant'
          ? `answers ${most} of your requests already`
          : 'is asked too much at this time; try again',
      ),
    );
  }

  #busy({ clusterId }: WayToCluster, why: string): LinkBusy {
    this.passed.note(clusterId, 'unavailable');
    return new LinkBusy(clusterId, why);
  }

  /**
   * Has the link looked at each second, as long as somebody waits; calls `silent` within 3 s of its
   * going silent. Returns the way to call that off.
   */
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

  /** Calls `over` once no more of it goes over the link. */
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
        reject(broken(way)); // of no effect where it was answered
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
        // its identity is good for seconds, and a client may send no byte of its body for long
        asked.flushHeaders();
        body.on('error', (error) => asked.destroy(error));
        body.pipe(asked);
      }
    });
  }
}

/** Whether there may be such an answer: a worker may say what is none. */
export const hasSoundStatus = ({ statusCode = 0 }: IncomingMessage): boolean =>
  statusCode >= 200 && statusCode <= 599;

export const broken = ({ clusterId }: WayToCluster): AnswerLost => new AnswerLost(clusterId);

/** Parameters that are asked for in place of the client's; undefined: not at all. */
export type Asked = Readonly<Record<string, string | number | undefined>>;

/** Names what a cluster is asked in place of what the client asks. */
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

/** Longer than such a token is good. */
const KEPT_MS = 60_000;
const MOST_TOKENS = 20_000;
/** Tokens that a cluster may give in `KEPT_MS`: a cluster that gives more loses its oldest. */
const MOST_OF_CLUSTER = 4_000;
/** Matches a token of a cluster, which may send any text as one. */
const TOKEN = /^[\w-]{1,256}$/;

interface Owner {
  readonly caller: Caller;
  readonly endsAt: number;
}

/**
 * Remembers to whom other clusters gave tokens of terminals: who brings one names no key, and what
 * is passed on ends with the key of who asked, and counts as theirs. Only hashes are kept, and no
 * cluster takes the room of another.
 */
export class TokenOwners {
  readonly #clock: Clock;
  /** By cluster, and by the token's hash; the oldest first. */
  readonly #owners = new Map<string, Map<string, Owner>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns false, and remembers nothing, if the text is not a token. */
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

  /** Undefined of a token that was not given over this manager. */
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

/**
 * `answered`: by the cluster, whatever it said; `unavailable`: the client is told so in its place.
 */
type PassedOutcome = 'answered' | 'unavailable';
export type PassedCounts = Readonly<Record<PassedOutcome, number>>;

const NONE: PassedCounts = { answered: 0, unavailable: 0 };

/** Counts, by cluster, how requests ended that a manager passed on. */
export class PassedRequests {
  /** By cluster; no more of them than ever joined. */
  readonly #counts = new Map<string, PassedCounts>();

  of(clusterId: string): PassedCounts {
    return this.#counts.get(clusterId) ?? NONE;
  }

  note(clusterId: string, outcome: PassedOutcome): void {
    const counts = this.of(clusterId);
    this.#counts.set(clusterId, { ...counts, [outcome]: counts[outcome] + 1 });
  }

  /** Refusals other than CLUSTER_UNAVAILABLE, and faults of this end, do not count. */
  noteFailure(clusterId: string, error: unknown): void {
    if (error instanceof Refusal && error.code === 'CLUSTER_UNAVAILABLE')
      this.note(clusterId, 'unavailable');
  }

  /** Counts how work ends that resolves with an answer. It fails for nobody who has left. */
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

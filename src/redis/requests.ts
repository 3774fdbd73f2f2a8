import { randomUUID } from 'node:crypto';
import { MAX_KEPT_ANSWER, type OpenedRequest, type RequestOwner, type Requests } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import type { RequestMark } from '../model/request-mark.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import { GIVE_UP_REQUEST, HOLD_REQUEST, KEEP_ANSWER, OPEN_REQUEST } from './scripts/requests.ts';

export const REQUEST_SCRIPTS = [OPEN_REQUEST, HOLD_REQUEST, KEEP_ANSWER, GIVE_UP_REQUEST] as const;

/** A request of a replica that says nothing for so long is nobody's. */
export const REQUEST_LEASE_MS = 6_000;
const HOLD_MS = 2_000;
/** Requests of a tenant that are kept at one time; past it the oldest go early. */
export const MAX_REQUESTS_OF_TENANT = 10_000;

export interface RedisRequestsDeps {
  readonly link: RedisLink;
  readonly keys: Keys;
  readonly log: Log;
  readonly limit?: number;
  readonly leaseMs?: number;
}

export interface Begun { readonly keys: readonly string[]; readonly args: readonly (string | number)[] }

interface InFlight {
  readonly owner: string;
  readonly body: string;
  readonly keys: readonly string[];
  readonly openedAt: number;
}

/** Requests under an Idempotency-Key, in Redis. What is in flight is held by a lease that `start()` keeps alive. */
export class RedisRequests implements Requests {
  readonly #deps: RedisRequestsDeps;
  readonly #leaseMs: number;
  /** By the mark's key; bounded by the requests that are served at one time. */
  readonly #inFlight = new Map<string, InFlight>();
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: RedisRequestsDeps) {
    this.#deps = deps;
    this.#leaseMs = deps.leaseMs ?? REQUEST_LEASE_MS;
  }

  start(): void { this.#timer ??= setInterval(() => { void this.#hold(); }, HOLD_MS).unref(); }
  stop(): void { clearInterval(this.#timer); }

  /** By what this replica holds the request; undefined where it does not. */
  ownerOf(mark: RequestMark): string | undefined { return this.#inFlight.get(mark.key)?.owner; }

  async openRequest(mark: RequestMark, owner: RequestOwner): Promise<OpenedRequest> {
    const begun = this.begin(mark, owner);
    if ('kind' in begun) return begun;
    try {
      const keys = [...begun.keys, this.#deps.keys.usage(owner.tenant, 'sandboxes')];
      return this.opened(mark, await this.#deps.link.run(OPEN_REQUEST, keys, begun.args));
    } catch (error) {
      this.#inFlight.delete(mark.key);
      throw error;
    }
  }

  /** Before a script opens it: what that needs of keys and arguments. It is this replica's from then on, until `opened` says that it isn't. */
  begin(mark: RequestMark, { tenant, ttlMs }: RequestOwner): Begun | OpenedRequest {
    const known = this.#inFlight.get(mark.key);
    if (known) return { kind: known.body === mark.body ? 'in-flight' : 'reused' };
    const [owner, keys] = [randomUUID(), this.#keys(mark, tenant)];
    this.#inFlight.set(mark.key, { owner, body: mark.body, keys, openedAt: performance.now() });
    return { keys, args: [mark.body, owner, this.#leaseMs, ttlMs, this.#deps.limit ?? MAX_REQUESTS_OF_TENANT] };
  }

  /** What the script answered. */
  opened(mark: RequestMark, [kind, more, unsure]: readonly unknown[]): OpenedRequest {
    const isUnsure = unsure === 'unsure' ? ({ isUnsure: true } as const) : {};
    if (kind === 'new') return { kind, ...(more === '' ? {} : { instance: String(more) }), ...isUnsure };
    this.#inFlight.delete(mark.key);
    if (kind === 'answered') return { kind, answer: String(more) };
    return { kind: kind === 'reused' ? 'reused' : 'in-flight' };
  }

  async keepAnswer(mark: RequestMark, owner: RequestOwner, answer: string): Promise<void> {
    if (answer.length > MAX_KEPT_ANSWER) return await this.giveUpRequest(mark, owner);
    const held = this.#inFlight.get(mark.key);
    this.#inFlight.delete(mark.key);
    await this.#deps.link.run(KEEP_ANSWER, this.#keys(mark, owner.tenant), [held?.owner ?? '', mark.body, answer, owner.ttlMs]);
  }

  async giveUpRequest(mark: RequestMark, { tenant }: RequestOwner): Promise<void> {
    const held = this.#inFlight.get(mark.key);
    this.#inFlight.delete(mark.key);
    if (held) await this.#deps.link.run(GIVE_UP_REQUEST, this.#keys(mark, tenant), [held.owner]);
  }

  #keys({ key }: RequestMark, tenant: RequestOwner['tenant']): readonly string[] {
    return [this.#deps.keys.request(tenant, key), this.#deps.keys.requests(tenant)];
  }

  /** Those that take long. Never rejects: a lease that could not be renewed is noticed where it matters, at the reservation. */
  async #hold(): Promise<void> {
    const now = performance.now();
    const due = [...this.#inFlight.values()].filter(({ openedAt }) => now - openedAt >= HOLD_MS / 2);
    await Promise.allSettled(due.map(({ owner, keys }) => this.#deps.link.run(HOLD_REQUEST, keys, [owner, this.#leaseMs])));
  }
}

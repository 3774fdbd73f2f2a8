import { randomUUID } from 'node:crypto';
import {
  KEPT_ANSWER_OVERHEAD,
  MAX_KEPT_ANSWER,
  type OpenedRequest,
  type RequestOwner,
  type Requests,
} from '../contracts/coordination/requests.ts';
import type { Log } from '../contracts/log.ts';
import type { ByteBounds } from '../lib/byte-shares.ts';
import type { RequestFingerprint } from '../model/request-fingerprint.ts';
import { tenantKey, tenantOf, type Tenant } from '../model/tenant.ts';
import type { RedisPlace } from './redis-link.ts';

/** A request of a silent replica then has no owner. */
const REQUEST_LEASE_MS = 6_000;
const HOLD_MS = 2_000;
/** Each deletes some answers of the tenant with the most bytes. */
const MOST_TRIMS = 20;
/** Beyond it, the oldest are deleted early. */
const MAX_REQUESTS_OF_TENANT = 10_000;

export interface RedisRequestsDeps extends RedisPlace {
  readonly log: Log;
  /** Beyond these, answers are deleted early. */
  readonly bounds: ByteBounds;
  readonly limit?: number;
  readonly leaseMs?: number;
}

export interface Begun {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

interface InFlight {
  readonly owner: string;
  readonly body: string;
  readonly keys: readonly string[];
  readonly openedAt: number;
}

/** From `start()` on, renews the leases of requests in progress. */
export class RedisRequests implements Requests {
  readonly #deps: RedisRequestsDeps;
  readonly #leaseMs: number;
  /** Bounded by the concurrent requests of this replica. */
  readonly #inFlight = new Map<string, InFlight>();
  /** Bytes by tenant, not published yet. */
  readonly #unpublished = new Map<string, { readonly tenant: Tenant; readonly bytes: number }>();
  #isSharing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: RedisRequestsDeps) {
    this.#deps = deps;
    this.#leaseMs = deps.leaseMs ?? REQUEST_LEASE_MS;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      void this.#hold();
      void this.#share();
    }, HOLD_MS).unref();
  }
  stop(): void {
    clearInterval(this.#timer);
  }

  /** Undefined unless this replica holds the request. */
  ownerOf(mark: RequestFingerprint): string | undefined {
    return this.#inFlight.get(mark.key)?.owner;
  }

  async openRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<OpenedRequest> {
    const begun = this.begin(mark, owner);
    if ('kind' in begun) return begun;
    try {
      const keys = [...begun.keys, this.#deps.keys.usage(owner.tenant, 'sandboxes')];
      return this.opened(mark, await this.#deps.link.run('open_request', keys, begun.args));
    } catch (error) {
      this.#inFlight.delete(mark.key);
      throw error;
    }
  }

  /** The request belongs to this replica from now on, unless `opened` returns otherwise. */
  begin(mark: RequestFingerprint, of: RequestOwner): Begun | OpenedRequest {
    const known = this.#inFlight.get(mark.key);
    if (known) return { kind: known.body === mark.body ? 'in-flight' : 'reused' };
    const [owner, keys] = [randomUUID(), this.#keys(mark, of)];
    this.#inFlight.set(mark.key, { owner, body: mark.body, keys, openedAt: performance.now() });
    return {
      keys,
      args: [mark.body, owner, this.#leaseMs, of.ttlMs, this.#deps.limit ?? MAX_REQUESTS_OF_TENANT],
    };
  }

  opened(mark: RequestFingerprint, [kind, more, place, unsure]: readonly unknown[]): OpenedRequest {
    if (kind === 'new')
      return {
        kind,
        ...(more !== '' && { instance: String(more) }),
        ...(place !== '' && { place: String(place) }),
        ...(unsure === 'unsure' && { isUnsure: true }),
      };
    this.#inFlight.delete(mark.key);
    if (kind === 'answered') return { kind, answer: String(more) };
    return { kind: kind === 'reused' ? 'reused' : 'in-flight' };
  }

  async confirmRequest({ key }: RequestFingerprint): Promise<boolean> {
    const held = this.#inFlight.get(key);
    if (!held) return false;
    const [word] = await this.#extend(held);
    return word === 'ok';
  }

  async placeRequest(
    { key }: RequestFingerprint,
    _owner: RequestOwner,
    place: string | undefined,
  ): Promise<boolean> {
    const held = this.#inFlight.get(key);
    if (!held) return false;
    const [word] = await this.#deps.link.run('place_request', held.keys, [held.owner, place ?? '']);
    return word === 'ok';
  }

  async keepAnswer(
    mark: RequestFingerprint,
    owner: RequestOwner,
    answer: string,
  ): Promise<boolean> {
    if (answer.length > MAX_KEPT_ANSWER) {
      await this.giveUpRequest(mark, owner);
      return false;
    }
    const held = this.#inFlight.get(mark.key);
    this.#inFlight.delete(mark.key);
    const counted = Buffer.byteLength(answer) + KEPT_ANSWER_OVERHEAD;
    const { link, bounds } = this.#deps;
    const [kept, bytes] = await link.run('keep_answer', this.#keys(mark, owner), [
      held?.owner ?? '',
      mark.body,
      answer,
      owner.ttlMs,
      counted,
      bounds.tenantBytes,
    ]);
    if (kept === 'ok')
      this.#unpublished.set(tenantKey(owner.tenant), {
        tenant: owner.tenant,
        bytes: Number(bytes),
      });
    return kept === 'ok';
  }

  async giveUpRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<void> {
    const held = this.#inFlight.get(mark.key);
    this.#inFlight.delete(mark.key);
    if (held) await this.#deps.link.run('give_up_request', this.#keys(mark, owner), [held.owner]);
  }

  #keys({ key }: RequestFingerprint, { tenant, isOfManager }: RequestOwner): readonly string[] {
    const { keys } = this.#deps;
    const request = keys.request(tenant, key);
    return isOfManager
      ? [request, keys.managerRequests(tenant), keys.managerAnswers(tenant)]
      : [request, keys.requests(tenant), keys.answers(tenant)];
  }

  /** Never rejects: the reservation detects a lost lease. */
  async #hold(): Promise<void> {
    const now = performance.now();
    const due = [...this.#inFlight.values()].filter(
      ({ openedAt }) => now - openedAt >= HOLD_MS / 2,
    );
    await Promise.allSettled(due.map((held) => this.#extend(held)));
  }

  /** `lost`: another owner has the request. */
  #extend({ owner, keys }: InFlight): Promise<readonly unknown[]> {
    return this.#deps.link.run('hold_request', keys, [owner, this.#leaseMs]);
  }

  /**
   * If the published total exceeds the bound, deletes the oldest answers of the tenant with the
   * most. Tenants are on different nodes, so no script sees all of them. Never rejects.
   */
  async #share(): Promise<void> {
    const {
      link,
      keys,
      log,
      bounds: { totalBytes },
    } = this.#deps;
    if (this.#isSharing) return;
    this.#isSharing = true;
    try {
      for (let step = 0; step < MOST_TRIMS && this.#unpublished.size > 0; step++) {
        const told = [...this.#unpublished.values()];
        this.#unpublished.clear();
        const [, sum, loudest, most] = await link.run(
          'note_shares',
          [keys.answerShares, keys.answerBytes],
          told.flatMap(({ tenant, bytes }) => [tenantKey(tenant), bytes]),
        );
        const over = Number(sum) - totalBytes;
        if (over <= 0 || typeof loudest !== 'string') return;
        const tenant = tenantOf(loudest);
        const [, bytes] = await link.run(
          'trim_answers',
          [keys.requests(tenant), keys.answers(tenant)],
          [Math.max(0, Number(most) - over)],
        );
        this.#unpublished.set(loudest, { tenant, bytes: Number(bytes) });
      }
    } catch (error) {
      log.debug({ error }, 'response-sizes-not-published');
    } finally {
      this.#isSharing = false;
    }
  }
}

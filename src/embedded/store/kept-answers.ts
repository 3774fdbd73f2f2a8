import type { Clock } from '../../contracts/clock.ts';
import {
  KEPT_ANSWER_OVERHEAD,
  MAX_KEPT_ANSWER,
  type OpenedRequest,
  type RequestOwner,
} from '../../contracts/coordination/requests.ts';
import type { Log } from '../../contracts/log.ts';
import { ByteShares, type ByteBounds } from '../../lib/byte-shares.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { AnswerEntry, AnswerRows, KeptText } from './answer-rows.ts';

export interface KeptAnswersDeps {
  readonly rows: AnswerRows;
  readonly clock: Clock;
  readonly log: Log;
  /** Beyond these, answers are deleted before they expire. */
  readonly bounds: ByteBounds;
}

/**
 * Requests in progress are only in memory. So are the keys of the rows (about 0.2 KB each), so a
 * new key needs no read.
 */
export class KeptAnswers {
  readonly #deps: KeptAnswersDeps;
  readonly #inFlight = new Map<string, string>();
  /** Oldest first. */
  readonly #kept = new Map<string, AnswerEntry>();
  readonly #ofTenant = new Map<string, Set<string>>();
  readonly #shares: ByteShares;
  #seq = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(deps: KeptAnswersDeps) {
    this.#deps = deps;
    this.#shares = new ByteShares(deps.bounds);
  }

  /** Loads the stored entries. */
  async start(): Promise<void> {
    for (let after = 0; ;) {
      const page = await this.#deps.rows.page(after, PAGE);
      for (const entry of page) {
        this.#forget(entry.key);
        this.#note(entry);
        this.#makeRoom(entry.tenant);
      }
      const last = page.at(-1);
      this.#seq = last?.seq ?? this.#seq;
      if (!last || page.length < PAGE) break;
      after = last.seq;
    }
    this.#sweep();
  }

  stop(): void {
    this.#cancelSweep?.();
  }

  async open(mark: RequestFingerprint): Promise<OpenedRequest> {
    const body = this.#inFlight.get(mark.key);
    if (body !== undefined) return { kind: body === mark.body ? 'in-flight' : 'reused' };
    this.#inFlight.set(mark.key, mark.body);
    try {
      const found = await this.#found(mark);
      if (found.kind !== 'new') this.#inFlight.delete(mark.key);
      return found;
    } catch (error) {
      this.#inFlight.delete(mark.key);
      throw error;
    }
  }

  async #found(mark: RequestFingerprint): Promise<OpenedRequest> {
    const entry = this.#kept.get(mark.key);
    if (!entry || entry.expiresAt <= this.#deps.clock.now()) return { kind: 'new' };
    const found = await this.#deps.rows.read(entry.seq);
    if (!found) return { kind: 'new' };
    if (found.body !== mark.body) return { kind: 'reused' };
    return 'place' in found
      ? { kind: 'new', place: found.place }
      : { kind: 'answered', answer: found.answer };
  }

  isInFlight({ key }: RequestFingerprint): boolean {
    return this.#inFlight.has(key);
  }

  async place(
    mark: RequestFingerprint,
    owner: RequestOwner,
    place: string | undefined,
  ): Promise<boolean> {
    if (!this.#inFlight.has(mark.key)) return false;
    if (place === undefined) this.#forget(mark.key);
    else await this.#put(mark, owner, { place });
    return true;
  }

  /** False if another answer is already stored. */
  async keep(mark: RequestFingerprint, owner: RequestOwner, answer: string): Promise<boolean> {
    const wasInFlight = this.#inFlight.delete(mark.key);
    if (answer.length > MAX_KEPT_ANSWER) return false;
    if (!wasInFlight) {
      const found = await this.#found(mark);
      if (found.kind !== 'new') return found.kind === 'answered' && found.answer === answer;
    }
    await this.#put(mark, owner, { answer });
    return true;
  }

  async #put(
    mark: RequestFingerprint,
    { tenant, ttlMs }: RequestOwner,
    kept: KeptText,
  ): Promise<void> {
    const entry = {
      seq: ++this.#seq,
      key: mark.key,
      tenant: tenantKey(tenant),
      expiresAt: this.#deps.clock.now() + ttlMs,
      bytes: Buffer.byteLength('place' in kept ? kept.place : kept.answer),
    };
    const written = this.#deps.rows.keep(entry, mark.body, kept);
    // After the write, so that a crash leaves one of the two.
    this.#forget(mark.key);
    this.#note(entry);
    // May delete this very answer, so its row must be written first.
    this.#makeRoom(entry.tenant);
    await written;
  }

  giveUp(mark: RequestFingerprint): void {
    this.#inFlight.delete(mark.key);
  }

  #note(entry: AnswerEntry): void {
    this.#kept.set(entry.key, entry);
    const own = this.#ofTenant.get(entry.tenant) ?? new Set<string>();
    this.#ofTenant.set(entry.tenant, own.add(entry.key));
    this.#shares.add(entry.tenant, entry.bytes + KEPT_ANSWER_OVERHEAD);
  }

  #makeRoom(tenant: string): void {
    for (
      let over = this.#shares.over(tenant);
      over !== undefined;
      over = this.#shares.over(tenant)
    ) {
      const [oldest] = this.#ofTenant.get(over) ?? [];
      if (oldest === undefined) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const kept = this.#kept.get(key);
    if (!kept) return;
    this.#kept.delete(kept.key);
    this.#shares.add(kept.tenant, -(kept.bytes + KEPT_ANSWER_OVERHEAD));
    const own = this.#ofTenant.get(kept.tenant);
    own?.delete(kept.key);
    if (own?.size === 0) this.#ofTenant.delete(kept.tenant);
    // A row that stays is found expired or evicted at the next start.
    this.#deps.rows.forget(kept.seq).catch((error: unknown) => {
      this.#deps.log.warn({ error }, 'stored-response-not-deleted');
    });
  }

  /** The oldest hundred at a time. */
  readonly #sweep = (): void => {
    const { clock } = this.#deps;
    let forgotten = 0;
    for (const [key, { expiresAt }] of this.#kept) {
      if (expiresAt > clock.now() || forgotten === SWEEP_STEP) break;
      this.#forget(key);
      forgotten += 1;
    }
    this.#cancelSweep = clock.at(
      clock.now() + (forgotten === SWEEP_STEP ? STEP_PAUSE_MS : SWEEP_PAUSE_MS),
      this.#sweep,
    );
  };
}

const PAGE = 1_000;
const SWEEP_STEP = 100;
const STEP_PAUSE_MS = 50;
export const SWEEP_PAUSE_MS = 60_000;

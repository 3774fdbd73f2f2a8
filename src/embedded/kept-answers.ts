import type { Clock } from '../contracts/clock.ts';
import { MAX_KEPT_ANSWER, type OpenedRequest, type RequestOwner } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import type { RequestMark } from '../model/request-mark.ts';
import type { AnswerEntry, AnswerRows } from './answer-rows.ts';

/** Answers that are kept at one time, in all and for one principal; past these the oldest go early. */
export const MAX_ANSWERS = 100_000;
export const MAX_ANSWERS_OF_PRINCIPAL = 25_000;

export interface KeptAnswersDeps {
  readonly rows: AnswerRows;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: { readonly all: number; readonly ofPrincipal: number };
}

/**
 * Requests under an Idempotency-Key. Those in flight are known to this process alone, and gone with it; answers lie in the
 * rows, and which keys have one is known here (about 0.2 KB each), so that a new key needs no read.
 */
export class KeptAnswers {
  readonly #deps: KeptAnswersDeps;
  readonly #limits: { readonly all: number; readonly ofPrincipal: number };
  readonly #inFlight = new Map<string, string>();
  /** The oldest first. */
  readonly #kept = new Map<string, AnswerEntry>();
  readonly #ofPrincipal = new Map<string, Set<string>>();
  #seq = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(deps: KeptAnswersDeps) {
    this.#deps = deps;
    this.#limits = deps.limits ?? { all: MAX_ANSWERS, ofPrincipal: MAX_ANSWERS_OF_PRINCIPAL };
  }

  /** Learns what is kept, and begins to forget what is past its time. */
  async start(): Promise<void> {
    for (let after = 0; ;) {
      const page = await this.#deps.rows.page(after, PAGE);
      for (const entry of page) this.#note(entry);
      const last = page.at(-1);
      this.#seq = last?.seq ?? this.#seq;
      if (!last || page.length < PAGE) break;
      after = last.seq;
    }
    this.#sweep();
  }

  stop(): void { this.#cancelSweep?.(); }

  async open(mark: RequestMark): Promise<OpenedRequest> {
    const body = this.#inFlight.get(mark.key);
    if (body !== undefined) return { kind: body === mark.body ? 'in-flight' : 'reused' };
    this.#inFlight.set(mark.key, mark.body);
    const kept = this.#kept.get(mark.key);
    if (!kept || kept.expiresAt <= this.#deps.clock.now()) return { kind: 'new' };
    try {
      const found = await this.#deps.rows.read(kept.seq);
      if (!found) return { kind: 'new' };
      this.#inFlight.delete(mark.key);
      return found.body === mark.body ? { kind: 'answered', answer: found.answer } : { kind: 'reused' };
    } catch (error) {
      this.#inFlight.delete(mark.key);
      throw error;
    }
  }

  async keep(mark: RequestMark, { principal, ttlMs }: RequestOwner, answer: string): Promise<void> {
    this.#inFlight.delete(mark.key);
    if (answer.length > MAX_KEPT_ANSWER) return;
    this.#forget(mark.key);
    const entry = { seq: ++this.#seq, key: mark.key, principal, expiresAt: this.#deps.clock.now() + ttlMs };
    this.#note(entry);
    await this.#deps.rows.keep(entry, mark.body, answer);
  }

  giveUp(mark: RequestMark): void { this.#inFlight.delete(mark.key); }

  #note(entry: AnswerEntry): void {
    this.#kept.set(entry.key, entry);
    const own = this.#ofPrincipal.get(entry.principal) ?? new Set<string>();
    this.#ofPrincipal.set(entry.principal, own.add(entry.key));
    if (own.size > this.#limits.ofPrincipal) this.#forget(first(own));
    if (this.#kept.size > this.#limits.all) this.#forget(first(this.#kept.keys()));
  }

  #forget(key: string | undefined): void {
    const kept = key === undefined ? undefined : this.#kept.get(key);
    if (!kept) return;
    this.#kept.delete(kept.key);
    const own = this.#ofPrincipal.get(kept.principal);
    own?.delete(kept.key);
    if (own?.size === 0) this.#ofPrincipal.delete(kept.principal);
    // A row that stays for want of this write is found at the next start, and is past its time or forgotten then.
    this.#deps.rows.forget(kept.seq).catch((error: unknown) => { this.#deps.log.warn({ error }, 'kept answer not forgotten'); });
  }

  /** The oldest hundred whose time has passed; soon again while there are more. */
  readonly #sweep = (): void => {
    const { clock } = this.#deps;
    let forgotten = 0;
    for (const [key, { expiresAt }] of this.#kept) {
      if (expiresAt > clock.now() || forgotten === SWEEP_STEP) break;
      this.#forget(key);
      forgotten += 1;
    }
    this.#cancelSweep = clock.at(clock.now() + (forgotten === SWEEP_STEP ? STEP_PAUSE_MS : SWEEP_PAUSE_MS), this.#sweep);
  };
}

const first = (keys: Iterable<string>): string | undefined => {
  for (const key of keys) return key;
  return undefined;
};

const PAGE = 1_000;
const SWEEP_STEP = 100;
const STEP_PAUSE_MS = 50;
export const SWEEP_PAUSE_MS = 60_000;

import { v7 } from 'uuid';
import type { ApprovalMirror } from '../../actors/approval/approval-mirror.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Records } from '../../contracts/record-store.ts';
import { isExpired, type ApprovalTerms } from '../../model/approvals/approval-changes.ts';
import {
  approvalDenied,
  approvalRequired,
  tooManyOpen,
  tooManyPending,
  tooManyWait,
} from '../../model/approvals/approval-refusals.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import { mayConcern, type PolicyRule } from '../../model/approvals/policy.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import { Grant, type GrantDeps } from './grant.ts';
import type { SealedContents } from './sealed-contents.ts';
import { Permits } from '../../lib/permits.ts';

export interface HeldRequest extends Pick<
  ApprovalRecord,
  | 'operation'
  | 'onceOnly'
  | 'method'
  | 'path'
  | 'namespace'
  | 'query'
  | 'headers'
  | 'summary'
  | 'binding'
  | 'ignored'
> {
  readonly route: string;
  readonly caller: Caller;
  readonly sessionId: string | undefined;
  readonly body: Buffer;
}

export interface ApprovalGateDeps extends GrantDeps {
  readonly approvals: Records<ApprovalRecord>;
  readonly mirror: ApprovalMirror;
  readonly contents: SealedContents;
  readonly clock: Clock;
  readonly log: Log;
  readonly rules: readonly PolicyRule[];
  readonly terms: ApprovalTerms;
}

export const MOST_PENDING = 20;
/** Includes unused grants. */
const MOST_OPEN = 500;
/** A repeat soon after use comes from a client that missed the answer. */
const USED_LATELY_MS = 10_000;

/** If the store is unreachable, passes only requests that are known to be granted. */
export class ApprovalGate {
  readonly waits: ApprovalWaits;
  readonly #deps: ApprovalGateDeps;
  readonly #rules = new Map<string, readonly PolicyRule[]>();
  /** Serializes the requests of each user. */
  readonly #asking = new Map<string, Promise<unknown>>();

  constructor(deps: ApprovalGateDeps) {
    this.#deps = deps;
    this.waits = new ApprovalWaits(deps);
  }

  /** In order. */
  rulesFor(operation: string, method: string): readonly PolicyRule[] {
    const key = `${method} ${operation}`;
    const known = this.#rules.get(key);
    if (known) return known;
    const rules = this.#deps.rules.filter((rule) => mayConcern(rule, { operation, method }));
    this.#rules.set(key, rules);
    return rules;
  }

  /** Refuses with APPROVAL_DENIED a request that was denied recently. */
  find(request: HeldRequest): Grant | undefined {
    const { mirror, clock, terms } = this.#deps;
    const now = clock.now();
    const session =
      request.onceOnly || request.sessionId === undefined
        ? undefined
        : this.#forSession(request, request.sessionId);
    if (session && !isExpired(session, now)) return new Grant(this.#deps, session);
    const bound = mirror.bound(request.binding);
    if (!bound || !isOf(request, bound) || isExpired(bound, now)) return undefined;
    if (isGrantedOnce(bound, now)) return new Grant(this.#deps, bound);
    if (bound.status === 'denied' && now < (bound.decidedAt ?? 0) + terms.pendingMs)
      throw approvalDenied({ id: bound.id, reason: bound.reason });
    return undefined;
  }

  /**
   * Equal requests share a grant. Refuses with APPROVAL_REQUIRED if the wait ends without one, and
   * with RATE_LIMITED beyond 20 pending requests.
   */
  async ask(request: HeldRequest, waitMs: number, signal: () => AbortSignal): Promise<Grant> {
    const asked = await this.#inTurn(tenantKey(request.caller), () => this.#pendingFor(request));
    if (waitMs > 0)
      await this.waits.decided(asked, { waitMs, tenant: tenantKey(request.caller), signal });
    const grant = this.find(request);
    if (grant) return grant;
    throw approvalRequired(asked);
  }

  #forSession(
    { caller: { keyId }, operation, route }: HeldRequest,
    sessionId: string,
  ): ApprovalRecord | undefined {
    return this.#deps.mirror.forSession({ keyId, sessionId, operation, route });
  }

  async #pendingFor(request: HeldRequest): Promise<ApprovalRecord> {
    const { approvals, mirror, clock } = this.#deps;
    const now = clock.now();
    const waiting = this.#pending(request);
    const known = waiting.find((record) => isOf(request, record));
    if (known) return known;
    if (waiting.length >= MOST_PENDING) throw tooManyPending(MOST_PENDING);
    if (mirror.count('pending') + mirror.count('approved') >= MOST_OPEN) throw tooManyOpen();
    const made = await approvals.create(this.#draft(request, now));
    // Other replicas may have created approvals too: the store's order decides which of them stand.
    await mirror.caughtUp();
    const pending = this.#pending(request);
    const first = pending.find((record) => isOf(request, record));
    const rank = pending.findIndex(({ id }) => id === made.id);
    const isSurplus = rank >= MOST_PENDING;
    if (first && first.id !== made.id) {
      await this.#withdraw(made);
      return first;
    }
    if (isSurplus) {
      await this.#withdraw(made);
      throw tooManyPending(MOST_PENDING);
    }
    return made;
  }

  #pending({ caller }: HeldRequest): readonly ApprovalRecord[] {
    const now = this.#deps.clock.now();
    return this.#deps.mirror.pending(caller).filter((record) => !isExpired(record, now));
  }

  #draft(request: HeldRequest, now: number): Omit<ApprovalRecord, 'revision'> {
    const { caller, body, sessionId, ...shown } = request;
    const { namespace, team, user, keyId, role, makers = [] } = caller;
    const id = v7({ msecs: now });
    return {
      ...shown,
      id,
      principal: {
        namespace,
        team,
        user,
        keyId,
        role,
        persons: [...new Set([user, ...makers])],
      },
      sessionId,
      content: body.length === 0 ? undefined : this.#deps.contents.seal(id, body),
      createdAt: now,
      expiresAt: now + this.#deps.terms.pendingMs,
      status: 'pending',
    };
  }

  /** If the removal fails, the approval expires. */
  async #withdraw(record: ApprovalRecord): Promise<void> {
    try {
      await this.#deps.approvals.remove(record);
    } catch (error) {
      this.#deps.log.warn({ id: record.id, error }, 'approval-not-withdrawn');
    }
  }

  async #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#asking.get(key) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.#asking.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#asking.get(key) === turn) this.#asking.delete(key);
    }
  }
}

/** Unused, or used so recently that the same request may continue. */
const isGrantedOnce = ({ status, scope, use }: ApprovalRecord, now: number): boolean =>
  (status === 'approved' && scope === 'once') ||
  (use !== undefined && (!use.settled || now < use.at + USED_LATELY_MS));

const isOf = (request: HeldRequest, { binding, route }: ApprovalRecord): boolean =>
  binding === request.binding && route === request.route;

const MOST_OF_TENANT = 16;
const MOST = 1_024;

interface WaitTerms {
  readonly waitMs: number;
  readonly tenant: string;
  readonly signal: () => AbortSignal;
}

class ApprovalWaits {
  readonly #mirror: ApprovalMirror;
  readonly #clock: Clock;
  readonly #places = new Permits({ all: MOST, tenant: MOST_OF_TENANT });
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor({ mirror, clock }: { readonly mirror: ApprovalMirror; readonly clock: Clock }) {
    this.#mirror = mirror;
    this.#clock = clock;
    mirror.follow(({ kind, record }) => {
      if (kind === 'put' && record.status === 'pending') return;
      for (const tell of this.#waiting.get(record.id) ?? []) tell();
    });
  }

  get size(): number {
    return [...this.#waiting.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * Resolves once the approval is decided or over, or after `waitMs`; rejects with the signal's
   * reason.
   */
  async decided({ id }: ApprovalRecord, { waitMs, tenant, signal }: WaitTerms): Promise<void> {
    const release = this.#places.take({ all: '', tenant }, (kind, most) =>
      kind === 'all' ? tooManyOpen() : tooManyWait(most),
    );
    try {
      await this.#told(id, waitMs, signal());
    } finally {
      release();
    }
  }

  #told(id: string, waitMs: number, signal: AbortSignal): Promise<void> {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    return new Promise<void>((resolve, reject) => {
      const end = (): void => {
        waiting.delete(end);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
        cancel();
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = (): void => {
        end();
        reject(signal.reason as Error);
      };
      const cancel = this.#clock.at(this.#clock.now() + waitMs, end);
      waiting.add(end);
      signal.addEventListener('abort', abort);
      if (signal.aborted) abort();
      else if (this.#mirror.get(id)?.status !== 'pending') end();
    });
  }
}

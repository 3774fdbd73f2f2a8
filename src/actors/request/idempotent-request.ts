import {
  MAX_KEPT_ANSWER,
  type OpenedRequest,
  type RequestOwner,
  type Requests,
} from '../../contracts/coordination/requests.ts';
import { RequestPlaced } from '../../model/fleet/cluster-refusals.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { idempotencyInFlight } from '../../model/refusals.ts';
import { REQUEST_KEPT_MS, type RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Caller } from '../../model/tenant.ts';

/** See OpenedRequest. */
export interface NewRequest {
  readonly instance: InstanceId | undefined;
  readonly isUnsure: boolean;
}

export class RequestNotNew extends Error {
  readonly opened: Exclude<OpenedRequest, { readonly kind: 'new' }>;

  constructor(opened: Exclude<OpenedRequest, { readonly kind: 'new' }>) {
    super(`the request is ${opened.kind}`);
    this.name = 'RequestNotNew';
    this.opened = opened;
  }
}

/** Only that manager repeats it, and only for some seconds. */
export type AskedByManager = 'first' | 'again';

/** In ms. Longer than a claim can wait. */
const OF_MANAGER_KEPT_MS = 600_000;

export const requestOwnerOf = (
  { namespace, team, user }: Caller,
  byManager?: AskedByManager,
): RequestOwner => ({
  tenant: { namespace, team, user },
  ...(byManager ? { ttlMs: OF_MANAGER_KEPT_MS, isOfManager: true } : { ttlMs: REQUEST_KEPT_MS }),
});

/**
 * The operation opens the request before any effect or refusal, because an earlier request may have
 * succeeded.
 */
export class IdempotentRequest {
  readonly mark: RequestFingerprint;
  readonly owner: RequestOwner;
  foundEarlier = false;
  /**
   * True if an earlier request may have had its effect, which must then not repeat even after its
   * end.
   */
  mayBeDone = false;
  isRouted = false;
  /** True if no earlier effect exists. */
  readonly isFirst: boolean;
  readonly #requests: Requests;
  #opened = false;
  #found: NewRequest | undefined;
  #place: string | undefined;
  #wentNowhere = false;

  constructor(
    requests: Requests,
    mark: RequestFingerprint,
    { owner, byManager }: { readonly owner: RequestOwner; readonly byManager?: AskedByManager },
  ) {
    this.#requests = requests;
    this.mark = mark;
    this.owner = owner;
    this.isFirst = byManager === 'first';
  }

  /** If it may be open, this request must keep or give it up. */
  get isOpen(): boolean {
    return this.#opened;
  }

  /** As a manager's API names it; undefined if unknown. */
  get place(): string | undefined {
    return this.#place;
  }

  async open(): Promise<NewRequest> {
    return (this.#found ??= await this.#open());
  }

  async #open(): Promise<NewRequest> {
    const opened = await this.#requests.openRequest(this.mark, this.owner);
    return {
      instance: this.took(opened),
      isUnsure: opened.kind === 'new' && opened.isUnsure === true,
    };
  }

  /**
   * Records the target before the request is sent there. Refuses with IDEMPOTENCY_IN_FLIGHT if
   * another replica owns it now: then don't send it.
   */
  async goTo(place: string): Promise<void> {
    if (place === this.#place) return;
    if (!(await this.#requests.placeRequest(this.mark, this.owner, place)))
      throw idempotencyInFlight();
    this.#place = place;
  }

  /** No effect at its target, now or later: a repetition may go anywhere. */
  wentNowhere(): void {
    this.#wentNowhere = true;
  }

  /** Call it before another operation opens the request. */
  mayOpen(): void {
    this.#opened = true;
  }

  static canKeep(answer: string): boolean {
    return answer.length <= MAX_KEPT_ANSWER;
  }

  /**
   * Durable when this resolves; false if repetitions don't get the answer. Stores none under a
   * manager's key, whose repetition finds the effect itself.
   */
  async keep(answer: string): Promise<boolean> {
    if (!this.owner.isOfManager)
      return await this.#requests.keepAnswer(this.mark, this.owner, answer);
    await this.giveUp();
    return false;
  }

  /** A repetition then runs. May be repeated. */
  async giveUp(): Promise<void> {
    try {
      if (this.#wentNowhere && this.#place !== undefined)
        await this.#requests.placeRequest(this.mark, this.owner, undefined);
    } finally {
      await this.#requests.giveUpRequest(this.mark, this.owner);
    }
  }

  async isOurs(): Promise<boolean> {
    return await this.#requests.confirmRequest(this.mark).catch(() => false);
  }

  /**
   * Throws RequestNotNew if another request owns it, RequestPlaced if it went to another cluster
   * and is not routed.
   */
  took(opened: OpenedRequest): InstanceId | undefined {
    this.#opened = opened.kind === 'new';
    if (opened.kind !== 'new') throw new RequestNotNew(opened);
    const { place, instance } = opened;
    this.#place = place;
    if (!this.isRouted && place?.includes('::')) throw new RequestPlaced(place);
    return instance;
  }
}

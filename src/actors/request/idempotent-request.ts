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

/** Describes what may have been done for a request that is new: see OpenedRequest. */
export interface NewRequest {
  readonly instance: InstanceId | undefined;
  readonly isUnsure: boolean;
}

/** A request under an Idempotency-Key that is not to be carried out. */
export class RequestNotNew extends Error {
  readonly opened: Exclude<OpenedRequest, { readonly kind: 'new' }>;

  constructor(opened: Exclude<OpenedRequest, { readonly kind: 'new' }>) {
    super(`the request is ${opened.kind}`);
    this.name = 'RequestNotNew';
    this.opened = opened;
  }
}

/**
 * Says which of the requests it is under a key that a manager made: nobody but that manager repeats
 * it, and only for some seconds.
 */
export type AskedByManager = 'first' | 'again';

/** Longer than a claim waits. */
const OF_MANAGER_KEPT_MS = 600_000;

/** Says whose a request of the caller's is, and how long it is kept. */
export const requestOwnerOf = (
  { namespace, team, user }: Caller,
  byManager?: AskedByManager,
): RequestOwner => ({
  tenant: { namespace, team, user },
  ...(byManager ? { ttlMs: OF_MANAGER_KEPT_MS, isOfManager: true } : { ttlMs: REQUEST_KEPT_MS }),
});

/**
 * A request under an Idempotency-Key that its operation opens, by itself or in one step with its
 * first effect; in any case before it does anything, and before it refuses: an earlier one may have
 * been carried out.
 */
export class IdempotentRequest {
  readonly mark: RequestFingerprint;
  readonly owner: RequestOwner;
  /** Says that the answer is what an earlier request did. */
  foundEarlier = false;
  /**
   * An earlier one may have had the effect, of which there is to be one only, even where that is
   * over by now. Else one of a key that is over may be had anew.
   */
  mayBeDone = false;
  /** A manager carries it out, which sends it where it went before. */
  isRouted = false;
  /** Nothing was asked under its key before: there is nothing to look for. */
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

  /** Whether it is open, or may be: then it is this one's to keep or to give up. */
  get isOpen(): boolean {
    return this.#opened;
  }

  /**
   * Names the pool that it went to, or is about to go to, as a manager's API does; undefined if
   * none is known.
   */
  get place(): string | undefined {
    return this.#place;
  }

  /** Opens it by itself, unless that was done. Rejects as `took` throws. */
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
   * Notes where it goes, before it is sent there. Refuses with IDEMPOTENCY_IN_FLIGHT if it is
   * another replica's by now: then it must not be sent.
   */
  async goTo(place: string): Promise<void> {
    if (place === this.#place) return;
    if (!(await this.#requests.placeRequest(this.mark, this.owner, place)))
      throw idempotencyInFlight();
    this.#place = place;
  }

  /** Says that it had no effect where it went, and never will: a repetition may go anywhere. */
  wentNowhere(): void {
    this.#wentNowhere = true;
  }

  /** It is opened together with something else: to be called before that. */
  mayOpen(): void {
    this.#opened = true;
  }

  /** Says whether an answer is short enough to be kept. */
  static canKeep(answer: string): boolean {
    return answer.length <= MAX_KEPT_ANSWER;
  }

  /**
   * Ends it with the answer that its repetitions get. Durable when it resolves. Resolves with false
   * where they don't get it, as `keepAnswer` does. Of one under a manager's key what it did tells,
   * and no answer is kept.
   */
  async keep(answer: string): Promise<boolean> {
    if (!this.owner.isOfManager)
      return await this.#requests.keepAnswer(this.mark, this.owner, answer);
    await this.giveUp();
    return false;
  }

  /** Ends it without an answer: its repetition is carried out anew. May be repeated. */
  async giveUp(): Promise<void> {
    try {
      if (this.#wentNowhere && this.#place !== undefined)
        await this.#requests.placeRequest(this.mark, this.owner, undefined);
    } finally {
      await this.#requests.giveUpRequest(this.mark, this.owner);
    }
  }

  /** Tells whether it is this replica's, and stays so for some seconds; false where unsure. */
  async isOurs(): Promise<boolean> {
    return await this.#requests.confirmRequest(this.mark).catch(() => false);
  }

  /**
   * Takes in how that went; throws RequestNotNew where the request is not this one's, RequestPlaced
   * where it went to another cluster and is not routed.
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

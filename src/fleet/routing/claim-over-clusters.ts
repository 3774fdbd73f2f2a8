import { clusterUnavailable, LinkBusy } from '../../model/fleet/cluster-refusals.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import { NOT_FOR_ONCE, type EffectUnderGrant } from '../../services/approvals/grant.ts';
import type { ClaimPlace } from '../../actors/env/claim-places.ts';
import type { Operations } from '../../services/operations.ts';
import type { IdempotentRequest } from '../../actors/request/idempotent-request.ts';
import { fingerprintOf } from '../../http/corridor/idempotency.ts';
import { markedPathOf } from '../../http/corridor/marked-answer.ts';
import { RefusedAway, type Pass } from '../../http/corridor/pass.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import type { Context } from '../../http/reply/context.ts';
import { noteIn, noteOfPeeked, taken } from './claim-key.ts';
import { errorCodeIn } from './fleet-names.ts';
import { answerAway, type FleetDeps } from './fleet-router.ts';

export interface ClaimOverClusters {
  readonly places: readonly [ClaimPlace, ...ClaimPlace[]];
  readonly caller: Caller;
  readonly row: Route;
  readonly context: Context;
  readonly request: AnyRequest;
  readonly bytes: Buffer;
  /** The client's Idempotency-Key, or the name of an approval. */
  readonly key: string | undefined;
  /** Says which key is the name of an approval. */
  readonly pass: Pick<Pass, 'key'>;
  readonly use: EffectUnderGrant;
  /** Claims from a pool of the manager's own cluster, for which it waits at most so long. */
  readonly own: (poolName: string, waitMs: number) => Promise<Answer>;
}

export interface ClaimOverClustersDeps {
  readonly fleet: FleetDeps;
  readonly operations: Pick<Operations, 'claimedBefore' | 'idempotentRequest'>;
}

/** Refusals of a claim that did nothing, and that another cluster may answer otherwise. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  'POOL_EXHAUSTED',
  'POOL_NOT_FOUND',
  'POOL_NOT_OWNED',
  'QUOTA_EXCEEDED',
  'TOO_MANY_WAITING',
]);

/**
 * Claims by the name of an env over clusters: from the best place, and where that refuses once from
 * another one, for what is left of the time that it may wait. What may have taken effect is not
 * tried elsewhere. Under an Idempotency-Key it is kept before anything is sent where that goes, and
 * repetitions go where the last attempt went, so that all of them together claim one. Under a grant
 * without such a key that holds for one use of it: once a use was given back, since it had no
 * effect, the next one goes anywhere. Throws RefusedAway where nothing was done.
 */
export const claimOverClusters = async (
  deps: ClaimOverClustersDeps,
  claim: ClaimOverClusters,
): Promise<Answer> => {
  const { places, key } = claim;
  const { clock } = deps.fleet.passing;
  const until = clock.now() + waitMsOf(deps, claim.request);
  const attemptAt = (place: ClaimPlace): Promise<Tried> =>
    attempt(deps, { ...claim, waitMs: Math.max(0, until - clock.now()) }, place);
  const binding = key === undefined ? undefined : new Binding(deps, claim, key);
  const bound = await binding?.begin(places[0], deps.fleet.fleet.clusterId);
  const [first, second] = bound ? [placeOf(bound, places)] : places;
  let tried = await attemptAt(first);
  if (tried.kind === 'refused' && second && (!binding || (await binding.rebind(second))))
    tried = await attemptAt(second);
  if (tried.kind === 'refused') throw new RefusedAway(tried.give);
  return tried.give();
};

/** How long a claim waits in all, in ms. */
const waitMsOf = (
  { fleet: { surface } }: ClaimOverClustersDeps,
  { body }: Pick<AnyRequest, 'body'>,
): number => {
  if (surface) return surface.waitMs;
  const { waitTimeoutSeconds = 0 } = (body ?? {}) as { readonly waitTimeoutSeconds?: number };
  return waitTimeoutSeconds * 1_000;
};

/**
 * Tells where an earlier claim under the key went, now that the name alone leads to no other
 * cluster; undefined: to none of which this one knows.
 */
export const placeBefore = async (
  deps: ClaimOverClustersDeps,
  claim: Omit<BoundClaim, 'use'>,
  key: string,
): Promise<ClaimPlace | undefined> => {
  const note = await new Binding(deps, { ...claim, use: NOT_FOR_ONCE }, key).noted();
  return note === undefined ? undefined : placeOf(note, []);
};

type Tried =
  | { readonly kind: 'answered'; readonly give: () => Answer }
  | { readonly kind: 'refused'; readonly give: () => Answer };

interface Attempt extends ClaimOverClusters {
  /** Says how much of its wait is left. */
  readonly waitMs: number;
}

const attempt = async (
  deps: ClaimOverClustersDeps,
  claim: Attempt,
  place: ClaimPlace,
): Promise<Tried> => {
  try {
    const answer =
      place.clusterId === deps.fleet.fleet.clusterId
        ? await claim.own(place.poolName, claim.waitMs)
        : await claimAway(deps, claim, place);
    const code = answer.status < 400 ? undefined : errorCodeIn(answer.body);
    if (answer.status < 300) place.took('one');
    if (code === 'POOL_EXHAUSTED') place.took('all');
    const give = (): Answer => answer;
    return code !== undefined && ELSEWHERE.has(code)
      ? { kind: 'refused', give }
      : { kind: 'answered', give };
  } catch (error) {
    const refusal = error instanceof NotSent ? error.refusal : error;
    if (!(refusal instanceof Refusal)) throw error;
    const wasSent = !(error instanceof NotSent || error instanceof LinkBusy);
    if (wasSent && !ELSEWHERE.has(refusal.code)) throw error;
    if (refusal.code === 'POOL_EXHAUSTED') place.took('all');
    return {
      kind: 'refused',
      give: () => {
        throw refusal;
      },
    };
  }
};

class NotSent extends Error {
  readonly refusal: unknown;

  constructor(refusal: unknown) {
    super('it was not sent');
    this.refusal = refusal;
  }
}

const claimAway = async (
  { fleet }: ClaimOverClustersDeps,
  { caller, row, context, request, bytes, key, use, waitMs }: Attempt,
  { clusterId, poolName }: ClaimPlace,
): Promise<Answer> => {
  const way = wayTo(fleet, clusterId);
  const body = JSON.parse(bytes.toString()) as object;
  const { surface } = fleet;
  const asked = surface
    ? surface.claimOf(body, `${clusterId}::${poolName}`)
    : { ...body, poolName };
  return await answerAway(fleet, {
    way,
    caller,
    row,
    context,
    request,
    bytes: Buffer.from(JSON.stringify(asked)),
    ...{ key, use, waitMs },
  });
};

const wayTo = ({ fleet, passing }: FleetDeps, clusterId: string) => {
  try {
    return passing.wayTo(fleet, clusterId);
  } catch (error) {
    throw new NotSent(
      error instanceof Refusal && error.code === 'CLUSTER_NOT_FOUND'
        ? clusterUnavailable(
            clusterId,
            'was removed from the fleet; a new Idempotency-Key goes elsewhere',
          )
        : error,
    );
  }
};

type BoundClaim = Pick<
  ClaimOverClusters,
  'caller' | 'context' | 'request' | 'bytes' | 'pass' | 'use'
>;

/**
 * Keeps where a claim under an Idempotency-Key goes, in two steps of which each is taken once by
 * all repetitions together: where the first attempt goes, and where all later ones go. Of one under
 * the name of a grant the repetitions are those that took the same use of it over.
 */
class Binding {
  readonly #first: IdempotentRequest;
  readonly #final: IdempotentRequest;
  /** The claim as it is where the env has all of its members on this cluster. */
  readonly #plain: IdempotentRequest;
  readonly #claimedBefore: () => Promise<unknown>;
  /** Another attempt of this use of a grant was under way, and may have had its effect. */
  readonly #mayBeElsewhere: boolean;

  constructor({ operations }: ClaimOverClustersDeps, claim: BoundClaim, key: string) {
    const { caller, bytes, pass, use } = claim;
    const known = (path: string, under = key): IdempotentRequest => {
      const of = { method: 'POST', path, key: under, body: bytes };
      return operations.idempotentRequest(fingerprintOf(caller, of), caller);
    };
    const ofUse = key === pass.key && use.usedAt !== undefined ? `${key} ${use.usedAt}` : key;
    this.#first = known('/sandboxes first', ofUse);
    this.#final = known('/sandboxes final', ofUse);
    this.#plain = known(markedPathOf({ ...claim, key }));
    this.#plain.mayBeDone = use.mayBeDone;
    this.#mayBeElsewhere = use.mayBeDone;
    this.#claimedBefore = () => operations.claimedBefore(caller, this.#plain);
  }

  /**
   * Undefined: it is the first, and goes to `best`; else where it goes, and nowhere else. One that
   * was answered before the env had members elsewhere stays on this cluster.
   */
  async begin(best: ClaimPlace, clusterId: string): Promise<string | undefined> {
    let here: string | undefined;
    const before = await taken(this.#first, async () => {
      if (await this.#isAnswered()) here = noteOf({ ...best, clusterId });
      else if (this.#mayBeElsewhere)
        throw unavailable(
          'where this was tried first is not known any more; say a new Idempotency-Key',
        );
      return here ?? noteOf(best);
    });
    return before === undefined ? here : ((await taken(this.#final, async () => before)) ?? before);
  }

  /** Tells where it goes; undefined: none was here. */
  async noted(): Promise<string | undefined> {
    const first = noteOfPeeked(await this.#first.peek());
    return first === undefined ? undefined : (noteOfPeeked(await this.#final.peek()) ?? first);
  }

  /** False: a repetition was here meanwhile, and goes on where it began. */
  async rebind(next: ClaimPlace): Promise<boolean> {
    return (await taken(this.#final, async () => noteOf(next))) === undefined;
  }

  /** Also where it claimed, and the replica was gone before its answer was kept. */
  async #isAnswered(): Promise<boolean> {
    if ((await noteIn(this.#plain)) !== undefined) return true;
    try {
      return (await this.#claimedBefore()) !== undefined;
    } finally {
      await this.#plain.giveUp();
    }
  }
}

const noteOf = ({ clusterId, poolName }: ClaimPlace): string => `${clusterId}/${poolName}`;

const placeOf = (note: string, places: readonly ClaimPlace[]): ClaimPlace => {
  const at = note.indexOf('/');
  const [clusterId, poolName] = [note.slice(0, at), note.slice(at + 1)];
  return (
    places.find((place) => noteOf(place) === note) ?? { clusterId, poolName, took: () => undefined }
  );
};

import { isWithin } from '../../actors/runtime/transition-history.ts';
import type { InspectedKinds } from '../../actors/inspection/inspected-actors.ts';
import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import {
  ACTOR_KINDS,
  type ActorKind,
  type ActorSummary,
  type InspectedActor,
} from '../../model/inspection.ts';
import { poolNotFound } from '../../model/refusals.ts';
import type {
  ActorsCursor,
  ActorsPage,
  ActorsRequest,
  DebugOperations,
} from './debug-operations.ts';

export interface ListActorsDeps {
  readonly kinds: InspectedKinds;
  readonly supervisor: Pick<Supervisor, 'pools'>;
  readonly replica: string;
}

/** The cost does not grow with the number of actors (operation `GET /debug/actors`). */
export const listActors =
  ({ kinds, supervisor, replica }: ListActorsDeps): DebugOperations['listActors'] =>
  (caller, request) => {
    const poolUid =
      request.pool === undefined ? undefined : kinds.pool.keyOf(request.pool, caller.namespace);
    if (
      request.pool !== undefined &&
      (poolUid === undefined || !supervisor.pools.recordOf(poolUid))
    )
      throw poolNotFound(request.pool);
    const items: ActorSummary[] = [];
    const wanted = ACTOR_KINDS.filter(
      (kind) => request.kind === undefined || kind === request.kind,
    );
    for (const kind of wanted.slice(
      Math.max(0, request.after ? wanted.indexOf(request.after.kind) : 0),
    )) {
      const left = request.limit - items.length;
      const { found, next } = pageOf(kinds, kind, { ...request, limit: left, poolUid });
      items.push(...found);
      if (next) return { items, next, replica };
    }
    return { items, next: undefined, replica };
  };

const pageOf = (
  kinds: InspectedKinds,
  kind: ActorKind,
  { state, limit, after, poolUid }: ActorsRequest & { readonly poolUid: string | undefined },
): { readonly found: readonly ActorSummary[]; readonly next: ActorsPage['next'] } => {
  const actors = kinds[kind];
  const from = after?.kind === kind ? after : undefined;
  const those = poolUid === undefined ? { group: undefined } : actors.ofPool(poolUid);
  if ('keys' in those) {
    if (from) return { found: [], next: undefined }; // at most one, which was shown
    if (limit === 0) return { found: [], next: those.keys.length > 0 ? startOf(kind) : undefined };
    return {
      found: those.keys
        .flatMap((key) => summary(actors.inspect(key)))
        .filter((each) => state === undefined || isWithin(each.state, state)),
      next: undefined,
    };
  }
  if (limit === 0)
    return { found: [], next: actors.transitions.size > 0 ? startOf(kind) : undefined };
  const { keys, next } = actors.transitions.page({
    ...those,
    state,
    limit,
    after: from && { group: from.group, state: from.state, entry: from.entry },
  });
  return {
    found: keys.flatMap((key) => summary(actors.inspect(key))),
    next: next && { kind, group: next.group, state: next.state, entry: next.entry },
  };
};

const startOf = (kind: ActorKind): ActorsCursor => ({ kind, group: '', state: '' });

const summary = (actor: InspectedActor | undefined): readonly ActorSummary[] =>
  actor
    ? [
        {
          kind: actor.kind,
          key: actor.key,
          name: actor.name,
          state: actor.state,
          since: actor.since,
          status: actor.status,
          paused: actor.paused,
        },
      ]
    : [];

import type { InspectedKinds } from '../../actors/inspection/inspected-actors.ts';
import { differences } from '../../actors/inspection/shown-fields.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import {
  BROKEN,
  type ShownFields,
  actorNotFound,
  rebuildTooEarly,
} from '../../model/inspection.ts';
import { unavailable } from '../../model/refusals.ts';
import { shardOf } from '../../model/shards.ts';
import type { ActorName, ActorView } from './debug-operations.ts';

export interface ShowActorDeps {
  readonly kinds: InspectedKinds;
  readonly coordination: Pick<Coordination, 'lease' | 'holders'>;
  readonly clock: Clock;
  readonly replica: string;
}

export type KeyedActor = Pick<ActorName, 'kind'> & { readonly key: string };

/** Reads the record uncached. Refuses with NOT_FOUND. */
export const showActor = async (
  deps: ShowActorDeps,
  { kind, key }: KeyedActor,
): Promise<ActorView> => {
  const { kinds, coordination, clock, replica } = deps;
  const actors = kinds[kind];
  const { stored, unread } = await storedOf(deps, { kind, key });
  const actor = actors.inspect(key); // after the read, which may update the actor
  if (!actor) throw actorNotFound();
  const shard = shardOf(actor.shardKey);
  const lease = coordination.lease(shard);
  const leader = lease ? replica : coordination.holders().get(shard);
  const now = clock.now();
  const isCompared = unread === undefined && actor.state !== BROKEN;
  const { kind: _, shardKey: __, record, deadlines, ...rest } = actor;
  return {
    kind,
    ...rest,
    leader: { shard, replica: leader, epoch: lease?.epoch },
    deadlines: deadlines.map(({ what, at }) => ({ what, at, inMs: at - now })),
    transitions: actors.transitions.of(key),
    pending: actors.pendingOf(key),
    record: {
      known: record,
      stored,
      unread,
      differs: isCompared ? differences(record, stored ?? {}) : [],
    },
    seenBy: { replica },
  };
};

export const rebuildActor = async (
  deps: ShowActorDeps,
  { kind, key }: KeyedActor,
): Promise<ActorView> => {
  const outcome = await deps.kinds[kind].rebuild(key).catch(() => {
    throw unavailable("the actor's facts cannot be read right now; try again");
  });
  if (outcome === 'unknown') throw actorNotFound();
  if (outcome === 'busy') throw rebuildTooEarly();
  return await showActor(deps, { kind, key });
};

const storedOf = async (
  { kinds }: ShowActorDeps,
  { kind, key }: KeyedActor,
): Promise<{ readonly stored?: ShownFields; readonly unread?: string }> => {
  try {
    const stored = await kinds[kind].durable(key);
    return stored ? { stored } : {};
  } catch {
    return { unread: 'the record cannot be read right now' };
  }
};

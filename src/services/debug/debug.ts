import { actorNotFound } from '../../model/inspection.ts';
import { countWithin, machineMermaid, machineStates } from '../../actors/inspection/machines.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import { Refusal } from '../../model/refusals.ts';
import { shardOf } from '../../model/shards.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ActorName, ActorView, DebugOperations } from './debug-operations.ts';
import { followActor } from './follow-actor.ts';
import { listActors, type ListActorsDeps } from './list-actors.ts';
import {
  driverReport,
  queuesReport,
  reflectorsReport,
  type ReplicaReportsDeps,
} from './replica-reports.ts';
import {
  answerText,
  viewOf,
  type ReplicaQuestion,
  type ReplicaViewsDeps,
} from './replica-views.ts';
import { rebuildActor, showActor, type KeyedActor, type ShowActorDeps } from './show-actor.ts';
import { type TransitionQuestion, TransitionSubscriptions } from './transition-subscriptions.ts';

export type DebugDeps = ListActorsDeps &
  ShowActorDeps &
  ReplicaReportsDeps &
  ReplicaViewsDeps & {
    readonly coordination: Pick<
      Coordination,
      'answerReplicas' | 'askReplica' | 'replicas' | 'lease' | 'holders'
    >;
  };

/** Also answers questions of other replicas from now on. */
export const debug = (deps: DebugDeps): DebugOperations => {
  const { kinds, coordination, replica: own } = deps;
  const sessions = new TransitionSubscriptions(deps);
  coordination.answerReplicas((text) =>
    answerText(() => {
      const question = JSON.parse(text) as ReplicaQuestion; // from a replica of the same service
      return question.about === 'transitions' ? sessions.page(question) : lookInto(deps, question);
    }),
  );
  const report =
    <T>(about: 'queues' | 'driver' | 'reflectors', here: () => T) =>
    (replica = own): Promise<T> =>
      viewOf(deps, replica, { question: { about }, here });
  return {
    listActors: listActors(deps),
    getActor: (caller, name, replica) => {
      const actor = keyed(deps, caller, name);
      return replica === undefined
        ? leadersView(deps, actor)
        : viewOf(deps, replica, {
            question: { about: 'actor', ...actor },
            here: () => showActor(deps, actor),
          });
    },
    rebuildActor: async (caller, name, replica) => {
      const actor = keyed(deps, caller, name);
      return await viewOf(deps, replica ?? leaderOf(deps, actor) ?? own, {
        question: { about: 'rebuild', ...actor },
        here: () => rebuildActor(deps, actor),
      });
    },
    followActor: followActor(deps),
    getMachine: (kind) => {
      const { transitions } = kinds[kind];
      const counts = transitions.counts();
      return {
        kind,
        actors: transitions.size,
        states: machineStates(kind).map((state) => ({
          ...state,
          count: state.path === '' ? transitions.size : countWithin(counts, state.path),
        })),
        mermaid: () => machineMermaid(kind, counts),
      };
    },
    getQueues: report('queues', () => queuesReport(deps)),
    getDriver: report('driver', () => driverReport(deps)),
    getReflectors: report('reflectors', () => reflectorsReport(deps)),
  };
};

const keyed = (
  { kinds }: DebugDeps,
  { namespace }: Caller,
  { kind, text }: ActorName,
): KeyedActor => {
  const key = kinds[kind].keyOf(text, namespace);
  if (key === undefined) throw actorNotFound();
  return { kind, key };
};

const leaderOf = (
  { kinds, coordination, replica }: DebugDeps,
  { kind, key }: KeyedActor,
): string | undefined => {
  const shardKey = kinds[kind].inspect(key)?.shardKey;
  if (shardKey === undefined) return undefined;
  const shard = shardOf(shardKey);
  return coordination.lease(shard) ? replica : coordination.holders().get(shard);
};

/** This replica's view if the leader does not answer, or does not know the actor yet. */
const leadersView = async (deps: DebugDeps, actor: KeyedActor): Promise<ActorView> => {
  const leader = leaderOf(deps, actor);
  if (leader === undefined || leader === deps.replica) return await showActor(deps, actor);
  try {
    return await viewOf(deps, leader, {
      question: { about: 'actor', ...actor },
      here: () => showActor(deps, actor),
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const view = await showActor(deps, actor);
    return {
      ...view,
      seenBy: {
        replica: deps.replica,
        note: `${leader} leads it, but could not show it: ${error.message}`,
      },
    };
  }
};

const lookInto = async (
  deps: DebugDeps,
  question: Exclude<ReplicaQuestion, TransitionQuestion>,
): Promise<unknown> => {
  switch (question.about) {
    case 'actor':
      return await showActor(deps, question);
    case 'rebuild':
      return await rebuildActor(deps, question);
    case 'queues':
      return queuesReport(deps);
    case 'driver':
      return driverReport(deps);
    case 'reflectors':
      return reflectorsReport(deps);
  }
};

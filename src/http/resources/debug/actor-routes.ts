import { invalidArgument } from '../../../model/refusals.ts';
import type { Operations } from '../../../services/operations.ts';
import { EventStream } from '../../reply/event-streams.ts';
import { PlainText } from '../../reply/plain-text.ts';
import {
  presentActor,
  presentActorNews,
  presentActors,
  presentMachine,
} from './actor-presenter.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import {
  ActorPage,
  ActorPath,
  ActorQuery,
  ActorReport,
  ActorsQuery,
  ActorTransition,
  cursorIn,
  MachinePath,
  MachineQuery,
  MachineReport,
} from './actor-schema.ts';

const MERMAID = 'text/vnd.mermaid';

export const debugActorRoutes = (operations: Operations): readonly Route[] => [
  listActors(operations),
  getActor(operations),
  followActor(operations),
  rebuildActor(operations),
  getMachine(operations),
];

const listActors = (operations: Operations): Route =>
  route({
    operationId: 'listActors',
    method: 'GET',
    path: '/debug/actors',
    access: 'admin',
    summary: 'List actors: sandboxes, pools, env members, autoscaling groups, open approvals',
    query: ActorsQuery,
    answers: { 200: ActorPage },
    refusals: ['POOL_NOT_FOUND'],
    handle: ({ caller, query: { cursor, clusterID: _here, ...query } }) => {
      const after = cursor === undefined ? undefined : cursorIn(cursor);
      if (cursor !== undefined && !after)
        throw invalidArgument('cursor', 'must be the `next` of an earlier page of this cluster');
      return ok(
        presentActors(operations.listActors(caller, { ...query, ...(after ? { after } : {}) })),
      );
    },
  });

const getActor = (operations: Operations): Route =>
  route({
    operationId: 'getActor',
    method: 'GET',
    path: '/debug/actors/{kind}/{key}',
    access: 'admin',
    summary: 'Get an actor',
    params: ActorPath,
    query: ActorQuery,
    answers: { 200: ActorReport },
    refusals: ['NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params: { kind, key }, query: { replica } }) =>
      ok(presentActor(await operations.getActor(caller, { kind, text: key }, replica))),
  });

const followActor = (operations: Operations): Route =>
  route({
    operationId: 'followActor',
    method: 'GET',
    path: '/debug/actors/{kind}/{key}/inspect',
    access: 'admin',
    summary: 'Follow the transitions of an actor',
    params: ActorPath,
    answers: { 200: ActorTransition },
    media: { only: 'text/event-stream' },
    refusals: ['NOT_FOUND', 'TOO_MANY_STREAMS'],
    handle: async ({ caller, params: { kind, key } }) => {
      const { news, close } = await operations.followActor(caller, { kind, text: key });
      return ok(new EventStream((signal) => presentActorNews(news(signal)), close));
    },
  });

const rebuildActor = (operations: Operations): Route =>
  route({
    operationId: 'rebuildActor',
    method: 'POST',
    path: '/debug/actors/{kind}/{key}/rebuild',
    access: 'admin',
    summary: 'Rebuild an actor from its record',
    effect: { kind: 'unkeyed' },
    params: ActorPath,
    query: ActorQuery,
    answers: { 200: ActorReport },
    refusals: ['NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    handle: async ({ caller, params: { kind, key }, query: { replica } }) =>
      ok(presentActor(await operations.rebuildActor(caller, { kind, text: key }, replica))),
  });

const getMachine = (operations: Operations): Route =>
  route({
    operationId: 'getMachine',
    method: 'GET',
    path: '/debug/machines/{kind}',
    access: 'admin',
    summary: 'Get the state chart of a kind of actor, with the number of actors in each state',
    params: MachinePath,
    query: MachineQuery,
    answers: { 200: MachineReport },
    media: { also: [MERMAID] },
    refusals: ['NOT_FOUND'],
    handle: ({ params: { kind }, query, incoming }) => {
      const machine = operations.getMachine(kind);
      const format = query.format ?? incoming.accepts('application/json', MERMAID);
      return ok(
        format === 'mermaid' || format === MERMAID
          ? new PlainText(Buffer.from(machine.mermaid()), MERMAID)
          : presentMachine(machine),
      );
    },
  });

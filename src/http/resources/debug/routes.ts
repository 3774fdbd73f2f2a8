import type { Operations } from '../../../services/operations.ts';
import { presentDriver, presentQueues, presentReflectors } from './presenter.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { ReplicaQuery, ShardsQuery } from './actor-schema.ts';
import { DriverReport, QueuesReport, ReflectorsReport, ShardReport } from './schema.ts';

export const debugRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getShards',
    method: 'GET',
    path: '/debug/shards',
    access: 'admin',
    summary: 'List the shards and the replicas that lead them',
    query: ShardsQuery,
    answers: { 200: ShardReport },
    refusals: [],
    handle: () => ok(operations.shards()),
  }),
  route({
    operationId: 'getQueues',
    method: 'GET',
    path: '/debug/queues',
    access: 'admin',
    summary: 'Get the queues of a replica',
    query: ReplicaQuery,
    answers: { 200: QueuesReport },
    refusals: ['UNAVAILABLE'],
    handle: async ({ query: { replica } }) =>
      ok(presentQueues(await operations.getQueues(replica))),
  }),
  route({
    operationId: 'getDriver',
    method: 'GET',
    path: '/debug/driver',
    access: 'admin',
    summary: "Get the state of a replica's sandbox driver",
    query: ReplicaQuery,
    answers: { 200: DriverReport },
    refusals: ['UNAVAILABLE'],
    handle: async ({ query: { replica } }) =>
      ok(presentDriver(await operations.getDriver(replica))),
  }),
  route({
    operationId: 'getReflectors',
    method: 'GET',
    path: '/debug/reflectors',
    access: 'admin',
    summary: "Get the state of a replica's mirrors",
    query: ReplicaQuery,
    answers: { 200: ReflectorsReport },
    refusals: ['UNAVAILABLE'],
    handle: async ({ query: { replica } }) =>
      ok(presentReflectors(await operations.getReflectors(replica))),
  }),
];

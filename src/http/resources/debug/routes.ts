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
    summary: 'Which replica leads which shard',
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
    summary: 'What waits in a replica',
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
    summary: 'How what runs the sandboxes of a replica stands',
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
    summary: 'How the mirrors of a replica stand',
    query: ReplicaQuery,
    answers: { 200: ReflectorsReport },
    refusals: ['UNAVAILABLE'],
    handle: async ({ query: { replica } }) =>
      ok(presentReflectors(await operations.getReflectors(replica))),
  }),
];

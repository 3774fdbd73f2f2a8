import type { Operations } from '../../operations/operations.ts';
import { ok, route, type Route } from '../route.ts';
import { ShardReport } from '../schemas/debug.ts';

export const debugRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getShards', method: 'GET', path: '/debug/shards',
    access: 'admin', summary: 'Which replica leads which shard',
    answers: { 200: ShardReport }, refusals: [],
    handle: () => ok(operations.shards()),
  }),
];

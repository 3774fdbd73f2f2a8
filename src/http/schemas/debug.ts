import { z } from 'zod';

const Shard = z.object({
  shard: z.int().describe('Its number, from 0.'),
  leading: z.boolean().describe('Whether the answering replica leads it: it holds the lease, and its mirror has caught up.'),
  replica: z.string().optional().describe('Who holds its lease, as the answering replica last heard; left out while nobody does.'),
});

export const ShardReport = z.object({
  replica: z.string().describe('Who answers.'),
  replicas: z.array(z.string()).describe('The live ones, by name.'),
  shards: z.array(Shard).describe('All of them.'),
}).meta({ id: 'ShardReport' });

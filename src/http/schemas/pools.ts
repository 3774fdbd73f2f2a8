import { z } from 'zod';
import { isDnsLabel } from '../../model/identifiers.ts';
import { POOL_PHASES } from '../../model/pool.ts';
import { poolNotFound } from '../../model/refusals.ts';
import type { PathParams } from '../route.ts';
import { flag, limit, MAX_REFERENCE, maybe, name, offset, pageOf, text, textMap, timestamp } from './common.ts';

export const PoolPath: PathParams<{ name: string }> = {
  schema: z.object({ name: z.string().refine(isDnsLabel).describe('A pool of the caller\'s.') }),
  otherwise: poolNotFound,
  names: { name: 'pool' },
};

const replicas = z.int().min(0).max(10_000);
const notYet = maybe(z.unknown().refine(() => false, 'inline definitions are not supported by this version; name a template with templateName')
  .meta({ not: {}, description: 'Refused: not there yet.' }));

export const CreatePoolBody = z.object({
  name: name.describe('A DNS label.'),
  template: notYet,
  overrides: notYet,
  templateName: text(MAX_REFERENCE).describe('One of the daemon\'s [templates](templates.md).'),
  replicas: replicas.default(1).describe('See [what replicas counts](decisions/0003-what-replicas-counts.md).'),
  labels: textMap(1_024).default({}).describe('At most 64. Data, never interpreted.'),
  annotations: textMap(4_096).default({}).describe('At most 64. Data, never interpreted.'),
});

export const UpdatePoolBody = z.object({ replicas: maybe(replicas), template: notYet, overrides: notYet });
export const PoolListQuery = z.object({ all: maybe(flag).describe('Of every tenant. Admins alone.'), limit, offset });
export const DeletePoolQuery = z.object({ force: flag.default(false).describe('End its running sandboxes too. `?force` alone is true.') });

const Pool = z.object({
  name: z.string(),
  namespace: z.string(),
  cpu: z.string().describe('Of each instance.'),
  memory: z.string().describe('Of each instance.'),
  team: z.string().describe('The owner\'s.'),
  user: z.string().describe('The owner\'s.'),
  templateVersion: z.string().describe('The template\'s version when the pool was made.'),
  createdAt: timestamp,
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()).describe('`sandpool.dev/template-name` is the template\'s name.'),
  spec: z.object({ replicas: z.int().describe('How many there should be.') }),
  status: z.object({
    phase: z.enum(POOL_PHASES),
    idleReplicas: z.int().describe('Ready to claim.'),
    unavailableIdleReplicas: z.int().describe('Were ready, and are not now.'),
    runningReplicas: z.int().describe('Claimed.'),
    startingReplicas: z.int(),
    stoppingReplicas: z.int(),
    failedReplicas: z.int().describe('Unclaimed ones that died, until they are cleared away.'),
  }),
}).meta({
  id: 'Pool',
  description: `
The counts are exact. Phase: \`Pending\` not yet full since the daemon started · \`Ready\` all there · \`Scaling\` instances start
or go · \`Degraded\` some are unavailable, or starts keep failing while something is usable · \`Failed\` starts keep failing and
nothing is usable · \`Deleting\`. \`Updating\` is not used yet.`.trim(),
});

export const PoolEnvelope = z.object({ template: Pool }).meta({ id: 'PoolEnvelope' });
export const PoolPage = pageOf(Pool).meta({ id: 'PoolPage' });
export const PoolDeletion = z.object({ name: z.string(), namespace: z.string(), status: z.literal('Deleting') }).meta({ id: 'PoolDeletion' });

export type PoolWire = z.infer<typeof Pool>;
export type PoolDeletionWire = z.infer<typeof PoolDeletion>;

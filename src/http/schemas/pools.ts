import { z } from 'zod';
import { isDnsLabel } from '../../model/identifiers.ts';
import { POOL_PHASES } from '../../model/pool.ts';
import { poolNotFound } from '../../model/refusals.ts';
import type { PathParams } from '../route.ts';
import { flag, limit, MAX_REFERENCE, maybe, name, offset, pageOf, text, textMap, timestamp } from './common.ts';

export const PoolPath: PathParams<{ name: string }> = {
  schema: z.object({ name: z.string().refine(isDnsLabel) }),
  otherwise: poolNotFound,
};

const replicas = z.int().min(0).max(10_000);
const notYet = maybe(z.unknown().refine(() => false, 'inline definitions are not supported by this version; name a template with templateName'));

export const CreatePoolBody = z.object({
  name,
  template: notYet,
  overrides: notYet,
  templateName: text(MAX_REFERENCE),
  replicas: replicas.default(1),
  labels: textMap(1_024).default({}),
  annotations: textMap(4_096).default({}),
});

export const UpdatePoolBody = z.object({ replicas: maybe(replicas), template: notYet, overrides: notYet });
export const PoolListQuery = z.object({ all: maybe(flag), limit, offset });
export const DeletePoolQuery = z.object({ force: flag.default(false) });

const Pool = z.object({
  name: z.string(),
  namespace: z.string(),
  cpu: z.string(),
  memory: z.string(),
  team: z.string(),
  user: z.string(),
  templateVersion: z.string(),
  createdAt: timestamp,
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
  spec: z.object({ replicas: z.int() }),
  status: z.object({
    phase: z.enum(POOL_PHASES),
    idleReplicas: z.int(),
    unavailableIdleReplicas: z.int(),
    runningReplicas: z.int(),
    startingReplicas: z.int(),
    stoppingReplicas: z.int(),
    failedReplicas: z.int(),
  }),
});

export const PoolEnvelope = z.object({ template: Pool });
export const PoolPage = pageOf(Pool);
export const PoolDeletion = z.object({ name: z.string(), namespace: z.string(), status: z.literal('Deleting') });

export type PoolWire = z.infer<typeof Pool>;
export type PoolDeletionWire = z.infer<typeof PoolDeletion>;

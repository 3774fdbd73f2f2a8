import { z } from 'zod';
import { FORMAT } from '../api/resource.ts';
import { POOL_CONDITIONS } from '../../model/pools/pool-condition.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';

/** As the schema of `spec` has it. */
const MAX_REPLICAS = 10_000;

/**
 * Lists what a daemon adds to a `SandboxPool`: what of it is durable and not the owner's to say.
 */
export const ResolvedPoolSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  uid: z.string().max(64),
  /**
   * `namespace/name` and the moment under which `uid` was given: a copy of the object has another
   * of either, and gets a uid of its own.
   */
  bornAs: z.string().max(512),
  bornAt: z.iso.datetime(),
  createdAt: z.iso.datetime(),
  team: z.string().max(63),
  user: z.string().max(63),
  mark: z.string().max(256).optional(),
  /** As many as the owner's quota grants. */
  replicas: z.int().min(0).max(MAX_REPLICAS),
  env: z.object({ uid: z.string().max(64), name: z.string().max(63) }).optional(),
  decided: z.object({ id: z.int().min(0), sparesMs: z.int().min(0).optional() }).optional(),
  templateVersion: z.string().max(64).optional(),
  /** Hash of the source that `definition` was rendered from. */
  renderedFrom: z.string().max(64),
  definition: z.looseObject({}),
  updateRevision: z.string().max(64),
  unresolved: z
    .object({
      reason: z.string().max(64),
      message: z.string().max(4_096),
      templateVersion: z.string().max(64).optional(),
    })
    .optional(),
  breaker: z.object({
    failures: z.int().min(0),
    pausedUntil: z.number().min(0),
    reason: z.string().max(4_096),
  }),
  conditions: z
    .array(
      z.object({
        type: z.enum(POOL_CONDITIONS),
        status: z.enum(['True', 'False']),
        reason: z.string().max(64),
        message: z.string().max(4_096),
        since: z.number().min(0),
      }),
    )
    .max(POOL_CONDITIONS.length)
    .optional(),
  deleting: z.enum(['none', 'keep-running', 'force']),
  /** See Seals: what stands above is a daemon's for this object. */
  seal: z.string().max(64).optional(),
});

export type ResolvedPool = Omit<z.infer<typeof ResolvedPoolSchema>, 'definition'> & {
  readonly definition: InstanceDefinition;
};

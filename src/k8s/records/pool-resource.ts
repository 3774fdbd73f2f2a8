import type { Grants } from '../../contracts/grants.ts';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import {
  CLOSED_BREAKER,
  DEFAULT_UPDATE_STRATEGY,
  type CarriedDecision,
  type PoolRecord,
  type Unresolved,
  type UpdateStrategy,
} from '../../model/pools/pool.ts';
import { sourceHashOf, sourceOf, type PoolSource } from '../../model/pools/pool-source.ts';
import {
  renderPool,
  SourceFault,
  type RenderedPool,
  type RenderLookups,
} from '../../model/pools/render-pool.ts';
import { formatFingerprint, parseFingerprint } from '../../model/request-fingerprint.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import { accessField, type Access } from '../../model/tenant.ts';
import { ownerOf } from '../sandboxes/identity-annotations.ts';
import { ownedResource, type ResourceTerms } from './owned-resource.ts';
import {
  FORMAT,
  type Fault,
  type Resource,
  type ResourceObject,
  type Written,
} from '../api/resource.ts';
import { POOL_LABEL } from '../sandboxes/sandbox-resource.ts';
import { z } from 'zod';
import { POOL_CONDITIONS } from '../../model/pools/pool-condition.ts';

export interface PoolSpec extends PoolSource {
  readonly access?: Access;
  readonly replicas: number;
  readonly minReplicas?: number;
  readonly maxReplicas?: number;
  readonly updateStrategy?: UpdateStrategy;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface PoolResourceDeps extends RenderLookups, ResourceTerms {
  /** Throws DefinitionRefused if the driver cannot run it. */
  readonly check: (definition: InstanceDefinition) => void;
  /** Grants hand-made and hand-resized pools within their owner's quota. */
  readonly grants: Grants<PoolRecord>;
}

const LONGEST_REASON = 4_096;

const UNRENDERED = 'none';

export const poolResource = (deps: PoolResourceDeps): Resource<PoolRecord> =>
  ownedResource<PoolRecord, ResolvedPool>({
    kind: 'SandboxPool',
    plural: 'sandboxpools',
    format: FORMAT,
    label: POOL_LABEL,
    ...deps,
    written,
    recordOf: poolRecordOf,
    asked,
    settled: (object) => settled(object, deps),
  });

const written = (
  record: Omit<PoolRecord, 'revision'>,
  bornAt: string,
): Written & { readonly resolved: ResolvedPool } => ({
  labels: { [POOL_LABEL]: record.uid },
  spec: specOf(record),
  resolved: resolvedOf(record, bornAt),
});

const specOf = (record: Omit<PoolRecord, 'revision'>) => {
  const { source, replicas, requested, minReplicas, maxReplicas } = record;
  const { updateStrategy, labels, annotations, access } = record;
  return {
    ...sourceOf(source),
    replicas: requested ?? replicas,
    minReplicas,
    maxReplicas,
    updateStrategy,
    labels,
    annotations,
    ...accessField(access),
  } satisfies PoolSpec;
};

const resolvedOf = (record: Omit<PoolRecord, 'revision'>, bornAt: string) => {
  const { uid, name, owner, createdAt, mark, env, decided, replicas, source } = record;
  const { templateVersion, unrendered, unresolved, definition, updateRevision } = record;
  const { breaker, conditions, deleting } = record;
  return {
    format: FORMAT,
    uid,
    bornAs: `${owner.namespace}/${name}`,
    bornAt,
    createdAt: new Date(createdAt).toISOString(),
    team: owner.team,
    user: owner.user,
    replicas,
    mark: mark ? formatFingerprint(mark) : undefined,
    env,
    decided,
    templateVersion,
    renderedFrom: unrendered ? UNRENDERED : sourceHashOf(source),
    definition,
    updateRevision,
    breaker: { ...breaker, reason: breaker.reason.slice(0, LONGEST_REASON) },
    unresolved: unresolved
      ? { ...unresolved, message: unresolved.message.slice(0, LONGEST_REASON) }
      : undefined,
    conditions: conditions ? [...conditions] : undefined,
    deleting: deleting === false ? ('none' as const) : deleting,
  } satisfies ResolvedPool;
};

const poolRecordOf = (
  { metadata, spec: given }: ResourceObject,
  resolved: ResolvedPool,
): PoolRecord => {
  const stated = statedIn(given as PoolSpec);
  const mark = resolved.mark === undefined ? undefined : parseFingerprint(resolved.mark);
  const deleting = resolved.deleting === 'none' ? false : resolved.deleting;
  const replicas = resolved.replicas;
  return {
    uid: resolved.uid,
    revision: metadata.resourceVersion,
    name: metadata.name,
    owner: { namespace: metadata.namespace ?? '', team: resolved.team, user: resolved.user },
    createdAt: Date.parse(resolved.createdAt),
    ...(mark ? { mark } : {}),
    ...(resolved.env ? { env: resolved.env } : {}),
    ...(resolved.decided ? { decided: decidedIn(resolved.decided) } : {}),
    ...stated,
    replicas,
    ...(stated.replicas === replicas ? {} : { requested: stated.replicas }),
    ...(isRendered(stated.source, resolved) ? {} : { unrendered: true }),
    ...(resolved.templateVersion === undefined
      ? {}
      : { templateVersion: resolved.templateVersion }),
    definition: resolved.definition,
    updateRevision: resolved.updateRevision,
    breaker: resolved.breaker,
    ...(resolved.unresolved ? { unresolved: unresolvedIn(resolved.unresolved) } : {}),
    ...(resolved.conditions ? { conditions: resolved.conditions } : {}),
    // Deleted by kubectl, and held by another finalizer: ends as by DELETE.
    deleting:
      metadata.deletionTimestamp === undefined || deleting !== false ? deleting : 'keep-running',
  };
};

const asked = ({ requested, ...record }: PoolRecord): PoolRecord | undefined =>
  record.deleting !== false || requested === undefined
    ? undefined
    : { ...record, replicas: requested };

const decidedIn = ({ id, sparesMs }: NonNullable<ResolvedPool['decided']>): CarriedDecision => ({
  id,
  ...(sparesMs === undefined ? {} : { sparesMs }),
});

const unresolvedIn = ({
  reason,
  message,
  templateVersion,
}: NonNullable<ResolvedPool['unresolved']>): Unresolved => ({
  reason,
  message,
  ...(templateVersion === undefined ? {} : { templateVersion }),
});

const isRendered = (source: PoolSource, { renderedFrom }: ResolvedPool): boolean =>
  renderedFrom === sourceHashOf(source);

type Stated = Pick<
  PoolRecord,
  | 'replicas'
  | 'minReplicas'
  | 'maxReplicas'
  | 'source'
  | 'updateStrategy'
  | 'labels'
  | 'annotations'
  | 'access'
>;

const statedIn = ({
  replicas,
  minReplicas,
  maxReplicas,
  updateStrategy,
  labels = {},
  annotations = {},
  access,
  ...source
}: PoolSpec): Stated => ({
  replicas,
  ...(minReplicas === undefined ? {} : { minReplicas }),
  ...(maxReplicas === undefined ? {} : { maxReplicas }),
  source: sourceOf(source),
  updateStrategy: updateStrategy ?? DEFAULT_UPDATE_STRATEGY,
  labels,
  annotations,
  ...accessField(access),
});

const settled = (
  object: ResourceObject,
  deps: PoolResourceDeps,
): Omit<PoolRecord, 'revision'> | Fault => {
  const owner = ownerOf(object, deps.teamOf);
  if ('reason' in owner) return owner;
  const { metadata, spec } = object;
  const stated = statedIn(spec as PoolSpec);
  const rendered = renderedOf(stated.source, deps);
  if ('reason' in rendered) return rendered;
  const createdAt = Date.parse(metadata.creationTimestamp);
  return {
    uid: metadata.uid,
    name: metadata.name,
    owner,
    createdAt,
    ...stated,
    ...rendered,
    breaker: CLOSED_BREAKER,
    deleting: false,
  };
};

const renderedOf = (source: PoolSource, deps: PoolResourceDeps): RenderedPool | Fault => {
  try {
    const rendered = renderPool(source, deps);
    deps.check(rendered.definition);
    return rendered;
  } catch (error) {
    if (error instanceof DefinitionRefused)
      return { reason: 'DefinitionRefused', message: error.message };
    if (error instanceof SourceFault)
      return {
        reason: error.field === 'templateName' ? 'TemplateNotFound' : 'SourceInvalid',
        message: `spec.${error.message}`,
      };
    throw error;
  }
};

const MAX_REPLICAS = 10_000;

/** Durable data of a pool that the owner does not set. */
export const ResolvedPoolSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  uid: z.string().max(64),
  /**
   * `namespace/name` and creation time for which `uid` was assigned. A copy of the object differs,
   * and gets its own uid.
   */
  bornAs: z.string().max(512),
  bornAt: z.iso.datetime(),
  createdAt: z.iso.datetime(),
  team: z.string().max(63),
  user: z.string().max(63),
  mark: z.string().max(256).optional(),
  /** Granted by the owner's quota. */
  replicas: z.int().min(0).max(MAX_REPLICAS),
  env: z.object({ uid: z.string().max(64), name: z.string().max(63) }).optional(),
  decided: z.object({ id: z.int().min(0), sparesMs: z.int().min(0).optional() }).optional(),
  templateVersion: z.string().max(64).optional(),
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
  /** Proves that a daemon wrote the fields above for this object. */
  seal: z.string().max(64).optional(),
});

export type ResolvedPool = Omit<z.infer<typeof ResolvedPoolSchema>, 'definition'> & {
  readonly definition: InstanceDefinition;
};

import { z } from 'zod';
import { DefinitionRefused } from '../contracts/sandbox-driver.ts';
import { DNS_LABEL_FORM, isDnsLabel } from '../model/identifiers.ts';
import { CLOSED_BREAKER, type PoolRecord } from '../model/pool.ts';
import { renderDefinition } from '../model/render-definition.ts';
import { formatMark, parseMark } from '../model/request-mark.ts';
import type { InstanceDefinition, TemplateRecord } from '../model/template.ts';
import { updateRevisionOf } from '../model/update-revision.ts';
import { mendedOf, type Fault, type Resource, type ResourceObject, type Written } from './resource.ts';
import { FORMAT, POOL_LABEL } from './sandbox-resource.ts';

/** What the owner of a `SandboxPool` says; its bounds are those of `POST /sandboxpools`. */
export interface PoolSpec {
  readonly templateName: string;
  readonly replicas: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What a daemon adds to a `SandboxPool`: what of it is durable and not the owner's to say. */
export const ResolvedPoolSchema = z.object({
  format: z.int().min(1),
  uid: z.string().max(64),
  /** `namespace/name` and the moment under which `uid` was given: a copy of the object has another of either, and gets a uid of its own. */
  bornAs: z.string().max(512),
  bornAt: z.iso.datetime(),
  createdAt: z.iso.datetime(),
  team: z.string().max(63),
  user: z.string().max(63),
  mark: z.string().max(256).optional(),
  templateVersion: z.string().max(64),
  definition: z.looseObject({}),
  updateRevision: z.string().max(64),
  breaker: z.object({ failures: z.int().min(0), pausedUntil: z.number().min(0), reason: z.string().max(4_096) }),
  deleting: z.enum(['none', 'keep-running', 'force']),
});
type ResolvedPool = Omit<z.infer<typeof ResolvedPoolSchema>, 'definition'> & { readonly definition: InstanceDefinition };

export interface PoolResourceDeps {
  /** The template as it is known now. */
  readonly template: (name: string) => TemplateRecord | undefined;
  /** Throws DefinitionRefused where the driver can't run it. */
  readonly check: (definition: InstanceDefinition) => void;
  /** Whose a namespace is; undefined where that can't be told. */
  readonly teamOf: (namespace: string) => string | undefined;
  readonly now: () => number;
}

export const TEAM_ANNOTATION = 'sandpool.dev/team';
export const USER_ANNOTATION = 'sandpool.dev/user';

/** Of a pool in a team's namespace that names nobody. */
const DEFAULT_USER = 'default';
/** Between our clock and the API server's, at the birth of an object. */
const BIRTH_TOLERANCE_MS = 60_000;
const LONGEST_REASON = 4_096;

export const poolResource = (deps: PoolResourceDeps): Resource<PoolRecord> => ({
  kind: 'SandboxPool',
  plural: 'sandboxpools',
  place: ({ owner: { namespace }, name }) => ({ namespace, name }),
  find: (key) => ({ namespace: key.slice(0, key.indexOf('/')), name: key.slice(key.indexOf('/') + 1) }),
  unique: ({ uid }) => `${POOL_LABEL}=${uid}`,
  write: (record, before) => written(record, (before?.resolved as ResolvedPool | undefined)?.bornAt ?? new Date(deps.now()).toISOString()),
  read: (object) => {
    const resolved = object.resolved as ResolvedPool | undefined;
    if (resolved && resolved.format > FORMAT) return { kind: 'too-new', format: resolved.format };
    if (!resolved || !isBornAsItself(object, resolved)) return { kind: 'unsettled', object };
    return { kind: 'record', record: recordOf(object, resolved), ...mendedOf(object) };
  },
  settle: (object) => settled(object, deps),
});

const written = ({ name, owner, createdAt, mark, replicas, templateName, templateVersion, labels, annotations, definition, updateRevision, breaker, deleting, uid }: Omit<PoolRecord, 'revision'>, bornAt: string): Written => ({
  labels: { [POOL_LABEL]: uid },
  spec: { templateName, replicas, labels, annotations } satisfies PoolSpec,
  resolved: {
    format: FORMAT, uid, bornAs: `${owner.namespace}/${name}`, bornAt, createdAt: new Date(createdAt).toISOString(), team: owner.team, user: owner.user,
    ...(mark ? { mark: formatMark(mark) } : {}), templateVersion, definition, updateRevision, breaker: { ...breaker, reason: breaker.reason.slice(0, LONGEST_REASON) },
    deleting: deleting === false ? 'none' : deleting,
  } satisfies ResolvedPool,
});

const recordOf = ({ metadata, spec: given }: ResourceObject, resolved: ResolvedPool): PoolRecord => {
  const spec = given as PoolSpec;
  const mark = resolved.mark === undefined ? undefined : parseMark(resolved.mark);
  const deleting = resolved.deleting === 'none' ? false : resolved.deleting;
  return {
    uid: resolved.uid, revision: metadata.resourceVersion, name: metadata.name,
    owner: { namespace: metadata.namespace ?? '', team: resolved.team, user: resolved.user }, createdAt: Date.parse(resolved.createdAt), ...(mark ? { mark } : {}),
    replicas: spec.replicas, templateName: spec.templateName, templateVersion: resolved.templateVersion, labels: spec.labels ?? {}, annotations: spec.annotations ?? {},
    definition: resolved.definition, updateRevision: resolved.updateRevision, breaker: resolved.breaker,
    // Deleted by kubectl, and held by somebody's finalizer: it ends as by DELETE.
    deleting: metadata.deletionTimestamp === undefined || deleting !== false ? deleting : 'keep-running',
  };
};

const isBornAsItself = ({ metadata }: ResourceObject, { uid, bornAs, bornAt }: ResolvedPool): boolean =>
  bornAs === `${metadata.namespace ?? ''}/${metadata.name}` &&
  (uid === metadata.uid || Math.abs(Date.parse(bornAt) - Date.parse(metadata.creationTimestamp)) <= BIRTH_TOLERANCE_MS);

const settled = ({ metadata, spec: given }: ResourceObject, { template: templateOf, check, teamOf }: PoolResourceDeps): Written | Fault => {
  const spec = given as PoolSpec;
  const namespace = metadata.namespace ?? '';
  const team = metadata.annotations?.[TEAM_ANNOTATION] ?? teamOf(namespace);
  if (team === undefined) return { reason: 'OwnerUnknown', message: `the namespace ${namespace} is no team's; name one in the annotation ${TEAM_ANNOTATION}` };
  const user = metadata.annotations?.[USER_ANNOTATION] ?? DEFAULT_USER;
  for (const [annotation, value] of [[TEAM_ANNOTATION, team], [USER_ANNOTATION, user]] as const) {
    if (!isDnsLabel(value)) return { reason: 'OwnerInvalid', message: `${annotation} ${DNS_LABEL_FORM}` };
  }
  const template = templateOf(spec.templateName);
  if (!template) return { reason: 'TemplateNotFound', message: `spec.templateName: there is no usable template ${spec.templateName}` };
  const definition = renderDefinition(template.document);
  try {
    check(definition);
  } catch (error) {
    if (error instanceof DefinitionRefused) return { reason: 'DefinitionRefused', message: error.message };
    throw error;
  }
  const createdAt = Date.parse(metadata.creationTimestamp);
  return written({
    uid: metadata.uid, name: metadata.name, owner: { namespace, team, user }, createdAt, replicas: spec.replicas, templateName: spec.templateName,
    templateVersion: template.version, labels: spec.labels ?? {}, annotations: spec.annotations ?? {}, definition, updateRevision: updateRevisionOf(definition),
    breaker: CLOSED_BREAKER, deleting: false,
  }, new Date(createdAt).toISOString());
};

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { idOfPodName, podNameOf, type InstanceId } from '../../model/identifiers.ts';
import {
  END_REASONS,
  type LaunchOrder,
  type Claim,
  type End,
  type InstanceRecord,
} from '../../model/sandbox.ts';
import { MOST_METADATA, MOST_METADATA_BYTES } from '../../model/claim-terms.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import { formatFingerprint, isKeyed, parseFingerprint } from '../../model/request-fingerprint.ts';
import { foreignMetadataOf, type ForeignMetadata } from '../api/foreign-metadata.ts';
import { FORMAT } from '../api/resource.ts';

/** The collection of one namespace, or of all. */
export const sandboxesPath = (namespace?: string): string =>
  namespace === undefined
    ? '/apis/sandpool.dev/v1alpha1/sandboxes'
    : `/apis/sandpool.dev/v1alpha1/namespaces/${namespace}/sandboxes`;

export const sandboxPath = (namespace: string, id: InstanceId): string =>
  `${sandboxesPath(namespace)}/${podNameOf(id)}`;

/** Labels by which records and Pods are selected. */
export const POOL_LABEL = 'sandpool.dev/pool-uid';
export const STATE_LABEL = 'sandpool.dev/state';
export const OWNER_LABEL = 'sandpool.dev/owner';
export const REQUEST_LABEL = 'sandpool.dev/request';

/** The revision from which a record was moved without a change. */
const BUMPED_ANNOTATION = 'sandpool.dev/bumped-from';

/** Characters of sealed variables: of 64 KiB, what parts them, and the seal, in base64. */
const MOST_SEALED = 90_000;

const name = z.string().max(63);
const word = z.string().max(64);
const names = { team: name, user: name };

/**
 * The spec of a `Sandbox`: one per instance, named like its Pod. Times are ISO 8601, durations
 * milliseconds.
 */
export const SandboxSpecSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  state: z.enum(['idle', 'claimed']),
  poolUid: word,
  poolName: name,
  /** The pool's owner; the namespace is the object's own. */
  poolOwner: z.object(names),
  createdAt: z.iso.datetime(),
  updateRevision: word,
  cpu: word,
  memory: word,
  containerImages: z.record(name, z.string().max(512)),
  endpoints: z
    .record(
      name,
      z.object({
        port: z.int().min(1).max(65_535),
        scheme: z.enum(['http', 'https']),
        onHost: z.boolean(),
      }),
    )
    .optional(),
  startupTimeoutMs: z.int().min(0),
  /** It is for the one claim that it was launched for, which comes by then or never. */
  claimBy: z.iso.datetime().optional(),
  /** The Pod that was claimed with it; from then on another is not its own. */
  podUid: word.optional(),
  /**
   * Why it is ended, where that is another reason than that somebody deletes it: the end of its Pod
   * alone says that.
   */
  end: z.object({ reason: z.enum(END_REASONS), exitCode: z.int().optional() }).optional(),
  claim: z
    .object({
      ...names,
      claimedAt: z.iso.datetime(),
      idleTimeoutMs: z.int().min(0),
      maxLifetimeMs: z.int().min(0),
      endsAt: z.iso.datetime().optional(),
      mark: z.string().max(128).optional(),
      metadata: z
        .record(z.string().max(256), z.string().max(MOST_METADATA_BYTES))
        .refine((pairs) => Object.keys(pairs).length <= MOST_METADATA)
        .meta({ maxProperties: MOST_METADATA })
        .optional(),
      /** Variables of what is run in it: see ClaimEnv. */
      sealedEnv: z.string().max(MOST_SEALED).optional(),
    })
    .optional(),
  /** A later format has one: see Seals. By it this version knows what to keep its hands off. */
  seal: word.optional(),
});
export type SandboxSpec = z.infer<typeof SandboxSpecSchema>;

/** As the mirror keeps a `Sandbox`. */
export interface StoredSandbox {
  readonly record: InstanceRecord;
  readonly uid: string;
  readonly podUid: string | undefined;
  /** Somebody asked for its deletion, and a finalizer of somebody's holds it. */
  readonly terminating: boolean;
  readonly foreign?: ForeignMetadata;
}

/** One owner's label value: names need not be fit for labels. */
export const ownerLabel = (tenant: Tenant): string =>
  createHash('sha256').update(tenantKey(tenant)).digest('hex').slice(0, 32);

/** The object that an instance is born with. */
export const newSandboxObject = (launchOrder: LaunchOrder['record']): object =>
  objectOf({ ...launchOrder, revision: '', state: 'idle' }, {});

export interface Rewriting extends Pick<StoredSandbox, 'uid' | 'podUid' | 'foreign'> {
  /** Though nothing is changed: a PUT of what is there already would leave its revision. */
  readonly bumped?: boolean;
}

/** The object of a PUT that is conditional on the revision and uid of what was seen. */
export const rewritten = (
  record: InstanceRecord,
  { uid, podUid, bumped, foreign }: Rewriting,
): object =>
  objectOf(record, {
    uid,
    podUid,
    annotations: bumped ? { [BUMPED_ANNOTATION]: record.revision } : undefined,
    foreign,
  });

const objectOf = (
  record: InstanceRecord,
  {
    uid,
    podUid,
    annotations,
    foreign,
  }: {
    readonly uid?: string;
    readonly podUid?: string;
    readonly annotations?: object;
    readonly foreign?: ForeignMetadata;
  },
): object => ({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'Sandbox',
  metadata: {
    name: podNameOf(record.id),
    namespace: record.poolOwner.namespace,
    uid,
    resourceVersion: record.revision === '' ? undefined : record.revision,
    // Who wrote which field is not kept: without it the API server takes a fifth less time for a
    // claim, and tells it in 0.9 KB instead of 1.6.
    managedFields: uid === undefined ? undefined : [{}],
    ...foreign,
    annotations: foreign?.annotations ? { ...foreign.annotations, ...annotations } : annotations,
    labels: {
      ...foreign?.labels,
      [POOL_LABEL]: record.poolUid,
      [STATE_LABEL]: stateLabelOf(record),
      ...(record.claim ? { [OWNER_LABEL]: ownerLabel(record.claim.owner) } : {}),
      ...(record.claim?.mark && isKeyed(record.claim.mark)
        ? { [REQUEST_LABEL]: requestLabel(record.claim.mark.key) }
        : {}),
    },
  },
  spec: specOf(record, podUid),
});

/** Keeps what was launched for one claim from being found among those that are idle. */
const stateLabelOf = ({ claim, claimBy }: InstanceRecord): string =>
  claim ? 'claimed' : claimBy === undefined ? 'idle' : 'reserved';

/** A mark's key is base64url, which may begin or end with what a label value may not. */
export const requestLabel = (key: string): string => `m${key}m`;

const specOf = (record: InstanceRecord, podUid: string | undefined): SandboxSpec => ({
  format: FORMAT,
  state: record.claim ? 'claimed' : 'idle',
  poolUid: record.poolUid,
  poolName: record.poolName,
  poolOwner: { team: record.poolOwner.team, user: record.poolOwner.user },
  createdAt: new Date(record.createdAt).toISOString(),
  updateRevision: record.updateRevision,
  cpu: record.cpu,
  memory: record.memory,
  containerImages: record.containerImages,
  endpoints: record.endpoints,
  startupTimeoutMs: record.startupTimeoutMs,
  claimBy: record.claimBy === undefined ? undefined : new Date(record.claimBy).toISOString(),
  podUid,
  end: record.end && endSpec(record.end),
  claim: record.claim && claimSpec(record.claim),
});

const endSpec = ({ reason, exitCode }: End): NonNullable<SandboxSpec['end']> => ({
  reason,
  ...(exitCode === null ? {} : { exitCode }),
});

const claimSpec = ({
  owner,
  claimedAt,
  idleTimeoutMs,
  maxLifetimeMs,
  endsAt,
  mark,
  metadata,
  sealedEnv,
}: Claim): NonNullable<SandboxSpec['claim']> => ({
  team: owner.team,
  user: owner.user,
  claimedAt: new Date(claimedAt).toISOString(),
  idleTimeoutMs,
  maxLifetimeMs,
  endsAt: endsAt === undefined ? undefined : new Date(endsAt).toISOString(),
  mark: mark && formatFingerprint(mark),
  metadata,
  sealedEnv,
});

interface ObjectMeta extends ForeignMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly deletionTimestamp?: string;
}

type Share = <T>(value: T) => T;

/**
 * Undefined for an object that is no whole `Sandbox` of a format that is known here: somebody
 * else's to mend. `share` gives equal texts and values one place in memory.
 */
export const storedSandboxOf = (
  object: unknown,
  share: Share = (value) => value,
): StoredSandbox | undefined => {
  const { metadata, spec } = object as {
    readonly metadata: ObjectMeta;
    readonly spec: SandboxSpec;
  };
  // What the API server stores has passed the same schema there; here only what an older schema
  // could have let through.
  if (
    typeof spec !== 'object' ||
    spec === null ||
    spec.format > FORMAT ||
    typeof spec.poolUid !== 'string' ||
    (spec.state === 'claimed') !== (spec.claim !== undefined)
  )
    return undefined;
  const id = idOfPodName(metadata.name);
  if (id === undefined) return undefined;
  const foreign = foreignMetadataOf(metadata);
  return {
    record: { ...recordIn(spec, metadata, share), id },
    uid: metadata.uid,
    podUid: spec.podUid,
    terminating: metadata.deletionTimestamp !== undefined,
    ...(foreign ? { foreign } : {}),
  };
};

const recordIn = (
  spec: SandboxSpec,
  { namespace, resourceVersion }: ObjectMeta,
  share: Share,
): Omit<InstanceRecord, 'id'> => {
  const { claim, end } = spec;
  return {
    revision: resourceVersion,
    state: spec.state,
    poolUid: share(spec.poolUid),
    poolName: share(spec.poolName),
    poolOwner: share({ namespace, ...spec.poolOwner }),
    createdAt: Date.parse(spec.createdAt),
    updateRevision: share(spec.updateRevision),
    cpu: share(spec.cpu),
    memory: share(spec.memory),
    containerImages: share(spec.containerImages),
    ...(spec.endpoints ? { endpoints: share(spec.endpoints) } : {}),
    startupTimeoutMs: spec.startupTimeoutMs,
    ...(spec.claimBy === undefined ? {} : { claimBy: Date.parse(spec.claimBy) }),
    ...(claim ? { claim: claimIn(claim, namespace, share) } : {}),
    ...(end ? { end: { reason: end.reason, exitCode: end.exitCode ?? null } } : {}),
  };
};

const claimIn = (
  claim: NonNullable<SandboxSpec['claim']>,
  namespace: string,
  share: Share,
): Claim => {
  const mark = claim.mark === undefined ? undefined : parseFingerprint(claim.mark);
  return {
    owner: share({ namespace, team: claim.team, user: claim.user }),
    claimedAt: Date.parse(claim.claimedAt),
    idleTimeoutMs: claim.idleTimeoutMs,
    maxLifetimeMs: claim.maxLifetimeMs,
    ...(claim.endsAt === undefined ? {} : { endsAt: Date.parse(claim.endsAt) }),
    ...(mark ? { mark } : {}),
    ...(claim.metadata ? { metadata: claim.metadata } : {}),
    ...(claim.sealedEnv === undefined ? {} : { sealedEnv: claim.sealedEnv }),
  };
};

/**
 * Reads a record of our own from an answer of the API server. Throws where it is of a later format.
 */
export const storedFrom = (answer: unknown): StoredSandbox => {
  const stored = storedSandboxOf(answer);
  if (!stored) throw new Error('a record of a later format; this version must not touch it');
  return stored;
};

import { z } from 'zod';
import { groupFor, type AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import {
  MOST_GROUPS,
  MOST_MEMBERS,
  type EnvMember,
  type EnvMode,
  type EnvOverrides,
  type EnvRecord,
  type MemberConfig,
  type TemplateRef,
} from '../../model/envs/env.ts';
import { ENV_CONDITIONS } from '../../model/envs/env-condition.ts';
import { formatFingerprint, parseFingerprint } from '../../model/request-fingerprint.ts';
import { accessField, type Access } from '../../model/tenant.ts';
import { ownerOf } from '../sandboxes/identity-annotations.ts';
import { ownedResource, type ResourceTerms } from './owned-resource.ts';
import type { Fault, Resource, ResourceObject, Written } from '../api/resource.ts';
import { FORMAT } from '../api/resource.ts';

export const ENV_LABEL = 'sandpool.dev/env-uid';

interface EnvSpec {
  readonly access?: Access;
  readonly templateRef: TemplateRef;
  readonly mode?: EnvMode;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly envDocs?: string;
  readonly overrides?: EnvOverrides;
  readonly members?: readonly {
    readonly name: string;
    readonly clusterID?: string;
    readonly replicas?: number;
    readonly config?: MemberConfig;
  }[];
  readonly groups?: readonly AutoscalingGroup[];
}

const Deleting = z.enum(['none', 'keep-running', 'force']);

/** Durable data of an env that the owner does not set. */
export const ResolvedEnvSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  uid: z.string().max(64),
  bornAs: z.string().max(512),
  bornAt: z.iso.datetime(),
  createdAt: z.iso.datetime(),
  team: z.string().max(63),
  user: z.string().max(63),
  mark: z.string().max(256).optional(),
  members: z
    .array(
      z.object({
        name: z.string().max(63),
        createdAt: z.iso.datetime(),
        mark: z.string().max(256).optional(),
        asked: z.int().min(0).optional(),
        deleting: Deleting,
      }),
    )
    .max(MOST_MEMBERS),
  scaling: z.record(z.string(), z.looseObject({})).meta({ maxProperties: MOST_GROUPS }),
  conditions: z
    .array(
      z.object({
        type: z.enum(ENV_CONDITIONS),
        status: z.enum(['True', 'False']),
        reason: z.string().max(64),
        message: z.string().max(4_096),
        since: z.number().min(0),
      }),
    )
    .max(ENV_CONDITIONS.length),
  deleting: Deleting,
  /** Proves that a daemon wrote the fields above for this object. */
  seal: z.string().max(64).optional(),
});
type ResolvedEnv = z.infer<typeof ResolvedEnvSchema>;

export interface EnvResourceDeps extends ResourceTerms {
  readonly clusterId: string;
}

export const envResource = (deps: EnvResourceDeps): Resource<EnvRecord> =>
  ownedResource<EnvRecord, ResolvedEnv>({
    kind: 'SandboxEnv',
    plural: 'sandboxenvs',
    format: FORMAT,
    label: ENV_LABEL,
    ...deps,
    written,
    recordOf: (object, resolved) => recordOf(object, resolved, deps),
    settled: (object) => settled(object, deps),
  });

const written = (
  record: Omit<EnvRecord, 'revision'>,
  bornAt: string,
): Written & { readonly resolved: ResolvedEnv } => ({
  labels: { [ENV_LABEL]: record.uid },
  spec: specOf(record),
  resolved: resolvedOf(record, bornAt),
});

const specOf = (record: Omit<EnvRecord, 'revision'>) => {
  const { access, templateRef, mode, labels, annotations, envDocs, overrides, groups } = record;
  return {
    ...accessField(access),
    templateRef,
    mode,
    labels,
    annotations,
    envDocs,
    overrides,
    groups,
    members: record.members.map((member) => ({
      name: member.name,
      clusterID: member.clusterId,
      replicas: member.replicas,
      config: member.config,
    })),
  } satisfies EnvSpec;
};

const resolvedOf = (record: Omit<EnvRecord, 'revision'>, bornAt: string) => {
  const { uid, name, owner, createdAt, mark, members, scaling, conditions, deleting } = record;
  return {
    format: FORMAT,
    uid,
    bornAs: `${owner.namespace}/${name}`,
    bornAt,
    createdAt: new Date(createdAt).toISOString(),
    team: owner.team,
    user: owner.user,
    mark: mark ? formatFingerprint(mark) : undefined,
    members: members.map((member) => ({
      name: member.name,
      createdAt: new Date(member.createdAt).toISOString(),
      mark: member.mark ? formatFingerprint(member.mark) : undefined,
      asked: member.asked,
      deleting: member.deleting === false ? ('none' as const) : member.deleting,
    })),
    scaling: { ...scaling } as ResolvedEnv['scaling'],
    conditions: [...conditions],
    deleting: deleting === false ? ('none' as const) : deleting,
  } satisfies ResolvedEnv;
};

const recordOf = (
  { metadata, spec }: ResourceObject,
  resolved: ResolvedEnv,
  { clusterId }: EnvResourceDeps,
): EnvRecord => {
  const mark = resolved.mark === undefined ? undefined : parseFingerprint(resolved.mark);
  const deleting = resolved.deleting === 'none' ? false : resolved.deleting;
  const known = new Map(resolved.members.map((member) => [member.name, member]));
  return {
    uid: resolved.uid,
    revision: metadata.resourceVersion,
    name: metadata.name,
    owner: { namespace: metadata.namespace ?? '', team: resolved.team, user: resolved.user },
    createdAt: Date.parse(resolved.createdAt),
    ...(mark ? { mark } : {}),
    ...statedIn(spec as EnvSpec, { clusterId, known, createdAt: Date.parse(resolved.createdAt) }),
    scaling: resolved.scaling,
    conditions: resolved.conditions,
    // Deleted by kubectl, and held by another finalizer: ends as by DELETE.
    deleting:
      metadata.deletionTimestamp === undefined || deleting !== false ? deleting : 'keep-running',
  };
};

interface MemberTerms {
  readonly clusterId: string;
  readonly known: ReadonlyMap<string, ResolvedEnv['members'][number]>;
  readonly createdAt: number;
}

type Stated = Pick<
  EnvRecord,
  | 'access'
  | 'templateRef'
  | 'mode'
  | 'labels'
  | 'annotations'
  | 'envDocs'
  | 'overrides'
  | 'members'
  | 'groups'
>;

const statedIn = (
  {
    access,
    templateRef,
    mode = 'WarmPool',
    labels = {},
    annotations = {},
    envDocs,
    overrides = {},
    members = [],
    groups = [],
  }: EnvSpec,
  terms: MemberTerms,
): Stated => ({
  ...accessField(access),
  templateRef,
  mode,
  labels,
  annotations,
  ...(envDocs === undefined ? {} : { envDocs }),
  overrides,
  groups,
  members: members.map((member) => memberOf(member, terms)),
});

const memberOf = (
  { name, clusterID, replicas = 1, config = {} }: NonNullable<EnvSpec['members']>[number],
  { clusterId, known, createdAt }: MemberTerms,
): EnvMember => {
  const resolved = known.get(name);
  const mark = resolved?.mark === undefined ? undefined : parseFingerprint(resolved.mark);
  return {
    name,
    clusterId: clusterID ?? clusterId,
    createdAt: resolved ? Date.parse(resolved.createdAt) : createdAt,
    ...(mark ? { mark } : {}),
    replicas,
    ...(resolved?.asked === undefined ? {} : { asked: resolved.asked }),
    config,
    deleting: resolved === undefined || resolved.deleting === 'none' ? false : resolved.deleting,
  };
};

const settled = (
  object: ResourceObject,
  deps: EnvResourceDeps,
): Omit<EnvRecord, 'revision'> | Fault => {
  const owner = ownerOf(object, deps.teamOf);
  if ('reason' in owner) return owner;
  const { metadata, spec } = object;
  const createdAt = Date.parse(metadata.creationTimestamp);
  const stated = statedIn(spec as EnvSpec, {
    clusterId: deps.clusterId,
    known: new Map(),
    createdAt,
  });
  return {
    uid: metadata.uid,
    name: metadata.name,
    owner,
    createdAt,
    ...withGroups(stated),
    scaling: {},
    conditions: [],
    deleting: false,
  };
};

/** A member without a group gets its own, as over REST. */
const withGroups = (stated: Stated): Stated => {
  const groups = [...stated.groups];
  const members = stated.members.map((member): EnvMember => {
    if (member.config.scalingGroup !== undefined) return member;
    if (!groups.some(({ name }) => name === member.name))
      groups.push(groupFor(member.name, { replicas: member.replicas, ...member.config }));
    return { ...member, config: { ...member.config, scalingGroup: member.name } };
  });
  return { ...stated, members, groups };
};

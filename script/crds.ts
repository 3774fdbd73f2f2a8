/** From the schemas of the HTTP API and of the records, the only source of every bound. */
import { stringify } from 'yaml';
import { z } from 'zod';
import { AdminCreateApiKeyBody } from '../src/http/resources/keys/schema.ts';
import { access } from '../src/http/corridor/common-schema.ts';
import { EnvSpecFields } from '../src/http/resources/envs/fields.ts';
import { RecordedPoolFields } from '../src/http/resources/pools/source-schema.ts';
import {
  CreatePoolBody,
  PoolScaleFields,
  UpdateStrategyFields,
} from '../src/http/resources/pools/schema.ts';
import { ApprovalSpecSchema } from '../src/k8s/records/approval-resource.ts';
import { ApiKeySpecSchema } from '../src/k8s/records/api-key-resource.ts';
import { ResolvedEnvSchema } from '../src/k8s/records/env-resource.ts';
import {
  DEFINITIONS_ANNOTATION,
  DEFINITIONS_VERSION,
} from '../src/k8s/records/installed-definitions.ts';
import { ResolvedPoolSchema } from '../src/k8s/records/pool-resource.ts';
import { SandboxSpecSchema } from '../src/k8s/sandboxes/sandbox-resource.ts';
import { UserQuotaSpecSchema } from '../src/k8s/records/user-quota-resource.ts';
import { WorkerClusterSpecSchema } from '../src/k8s/records/worker-cluster-resource.ts';
import { ResolvedTemplateSchema } from '../src/k8s/records/template-resource.ts';
import { DNS_LABEL_PATTERN } from '../src/model/identifiers.ts';
import { DEFAULT_UPDATE_STRATEGY } from '../src/model/pools/pool.ts';
import { SandboxTemplateSchema } from '../src/model/templates/template.ts';
import { described } from './crd-descriptions.ts';
import { structuralOf, type Structural } from './structural-schema.ts';

const FOLDER = 'deploy/helm/sandpool/crds/';
const HEADER = '# Written by script/crds.ts from the schemas of the HTTP API and of the records.\n';

interface Rule {
  readonly rule: string;
  readonly message: string;
}
interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  readonly priority?: number;
}

interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Cluster' | 'Namespaced';
  readonly description: string;
  readonly spec: Structural;
  /** Daemons fill it in. */
  readonly resolved?: Structural;
  readonly conditions: boolean;
  /** Beside conditions. */
  readonly status?: Structural;
  /** For `kubectl scale`. */
  readonly scale?: boolean;
  readonly rules: readonly Rule[];
  readonly columns: readonly Column[];
}

const AGE: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
const PROBLEM: Column = {
  name: 'Problem',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].message',
};
const READY: Column = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
};
const IDLE: Column = { name: 'Idle', type: 'integer', jsonPath: '.status.idleReplicas' };
const RUNNING: Column = { name: 'Running', type: 'integer', jsonPath: '.status.runningReplicas' };
const IS_LABEL: Rule = {
  rule: `self.metadata.name.matches('${DNS_LABEL_PATTERN}')`,
  message: 'the name must be a DNS-1123 label: 1 to 63 of a-z, 0-9 and inner hyphens',
};
const KEEPS_RESOLVED: Rule = {
  rule: '!has(oldSelf.resolved) || has(self.resolved)',
  message: 'resolved is filled in by Sandpool and must stay; use apply or edit, not replace',
};
/** Without its seal, an object would be no record. */
const KEEPS_SEAL: Rule = {
  rule: '!has(oldSelf.resolved) || !has(oldSelf.resolved.seal) || (has(self.resolved) && has(self.resolved.seal))',
  message: 'resolved.seal is filled in by Sandpool and must stay',
};
const KEEPS_OWN_SEAL: Rule = {
  rule: '!has(oldSelf.seal) || has(self.seal)',
  message: 'seal is filled in by Sandpool and must stay',
};

const fixed = (...fields: readonly string[]): readonly Rule[] =>
  fields.map((field) => ({
    rule: `self.${field} == oldSelf.${field}`,
    message: `${field} cannot be changed`,
  }));

/** At a place such as `containers[].resources`. */
const ruled = (schema: Structural, place: string, extra: Structural): void => {
  const node = place.split('.').reduce<Structural>((part, step) => {
    const name = step.replace('[]', '');
    const next = (part['properties'] as Record<string, Structural> | undefined)?.[name];
    if (!next) throw new Error(`${place}: there is no ${name}`);
    return step.endsWith('[]') ? (next['items'] as Structural) : next;
  }, schema);
  for (const [keyword, value] of Object.entries(extra)) {
    const before = node[keyword];
    node[keyword] =
      Array.isArray(before) && Array.isArray(value) && keyword === 'x-kubernetes-validations'
        ? [...(before as unknown[]), ...(value as unknown[])]
        : value;
  }
};

const byName: Structural = {
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
};
const validations = (...rules: readonly Rule[]): Structural => ({
  'x-kubernetes-validations': rules,
});

const ONE_ACTION: Rule = {
  rule: '(has(self.exec) ? 1 : 0) + (has(self.httpGet) ? 1 : 0) + (has(self.tcpSocket) ? 1 : 0) == 1',
  message: 'must have exactly one of exec, httpGet, tcpSocket',
};
const PROBE_PORTS: Rule = {
  rule: '(!has(self.httpGet) || has(self.httpGet.port)) && (!has(self.tcpSocket) || has(self.tcpSocket.port))',
  message: 'port is required',
};
const quantityWithin = (least: string, most: string, message: string): Rule => ({
  rule: `isQuantity(self) && quantity(self).compareTo(quantity('${least}')) >= 0 && quantity(self).compareTo(quantity('${most}')) <= 0`,
  message,
});

const NO_PARENT: Rule = {
  rule: '!("/" + self + "/").contains("/../")',
  message: 'must be a path without ..',
};

const templateSpec = (): Structural => {
  const spec = structuralOf(SandboxTemplateSchema.shape.spec);
  for (const list of ['containers', 'endpoints']) ruled(spec, list, byName);
  for (const list of ['ports', 'env']) ruled(spec, `containers[].${list}`, byName);
  ruled(spec, 'containers[].readinessProbe', validations(ONE_ACTION, PROBE_PORTS));
  ruled(spec, 'endpoints[].readinessProbe', validations(ONE_ACTION));
  for (const part of ['requests', 'limits']) {
    ruled(
      spec,
      `containers[].resources.${part}.cpu`,
      validations(quantityWithin('10m', '256', 'must be a cpu quantity from 10m to 256')),
    );
    ruled(
      spec,
      `containers[].resources.${part}.memory`,
      validations(quantityWithin('16Mi', '4Ti', 'must be a memory quantity from 16Mi to 4Ti')),
    );
  }
  ruled(spec, 'containers[].workingDir', validations(NO_PARENT));
  return spec;
};

const poolSpec = (): Structural => {
  const { labels, annotations } = CreatePoolBody.shape;
  const { autoUpdate, maxUnavailable } = UpdateStrategyFields;
  const updateStrategy = z.object({
    autoUpdate: autoUpdate.default(DEFAULT_UPDATE_STRATEGY.autoUpdate),
    maxUnavailable: maxUnavailable.default(DEFAULT_UPDATE_STRATEGY.maxUnavailable),
  });
  const { replicas, minReplicas, maxReplicas } = PoolScaleFields;
  const spec = structuralOf(
    z.object({
      ...RecordedPoolFields,
      access: access.optional(),
      replicas: replicas.default(1),
      minReplicas,
      maxReplicas,
      updateStrategy: updateStrategy.optional(),
      labels,
      annotations,
    }),
  );
  ruled(spec, 'templateName', { minLength: 1 });
  for (const path of ['mountPath', 'subPath'])
    ruled(spec, `overrides.volumes[].${path}`, validations(NO_PARENT));
  ruled(spec, 'template', templateSpec());
  return { ...spec, ...validations(...WHAT_TO_RUN, ...REPLICA_BOUNDS) };
};

const envSpec = (): Structural => {
  const spec = structuralOf(z.object(EnvSpecFields));
  for (const path of ['mountPath', 'subPath'])
    ruled(spec, `overrides.volumes[].${path}`, validations(NO_PARENT));
  for (const list of ['members', 'groups']) ruled(spec, list, byName);
  ruled(spec, 'groups[]', validations(GROUP_BOUNDS));
  return { ...spec, ...validations(MEMBERS_GROUPS, ...fixed('mode')) };
};

const GROUP_BOUNDS: Rule = {
  rule: 'self.minReplicas <= self.maxReplicas',
  message: 'minReplicas must be at most maxReplicas',
};
const MEMBERS_GROUPS: Rule = {
  rule: '!has(self.members) || self.members.all(m, !has(m.config) || !has(m.config.scalingGroup) || (has(self.groups) && self.groups.exists(g, g.name == m.config.scalingGroup)))',
  message: 'scalingGroup must be one of groups',
};

const WHAT_TO_RUN: readonly Rule[] = [
  {
    rule: 'has(self.templateName) || has(self.template) || (has(self.overrides) && has(self.overrides.image))',
    message: 'templateName is required if there is neither template nor overrides.image',
  },
  {
    rule: '!(has(self.templateName) && has(self.template))',
    message: 'template cannot be combined with templateName',
  },
];
const REPLICA_BOUNDS: readonly Rule[] = [
  {
    rule: '!has(self.minReplicas) || self.replicas >= self.minReplicas',
    message: 'replicas must be at least minReplicas',
  },
  {
    rule: '!has(self.maxReplicas) || self.replicas <= self.maxReplicas',
    message: 'replicas must be at most maxReplicas',
  },
];

const sandboxSpec = (): Structural => ({
  ...structuralOf(SandboxSpecSchema),
  ...validations(
    {
      rule: "(self.state == 'claimed') == has(self.claim)",
      message: 'claim is there exactly where state is claimed',
    },
    {
      rule: '!has(oldSelf.claim) || (has(self.claim) && self.claim.user == oldSelf.claim.user && self.claim.team == oldSelf.claim.team)',
      message: 'an instance is claimed at most once',
    },
    ...fixed('poolUid'),
  ),
});

const apiKeySpec = (): Structural => {
  const { description, team, user } = AdminCreateApiKeyBody.shape;
  const spec = structuralOf(
    z.object({ ...ApiKeySpecSchema.shape, team, user, description: z.string() }),
  );
  ruled(spec, 'description', structuralOf(description));
  return {
    ...spec,
    ...validations(...fixed('keyId', 'hash', 'team', 'user', 'role'), KEEPS_OWN_SEAL),
  };
};

const approvalSpec = (): Structural => ({
  ...structuralOf(ApprovalSpecSchema),
  ...validations(...fixed('binding', 'operation', 'method', 'path'), KEEPS_OWN_SEAL),
});

const userQuotaSpec = (): Structural => {
  const { team, user } = AdminCreateApiKeyBody.shape;
  return structuralOf(z.object({ ...UserQuotaSpecSchema.shape, team, user }));
};

const workerClusterSpec = (): Structural => ({
  ...structuralOf(WorkerClusterSpecSchema),
  ...validations(KEEPS_OWN_SEAL),
});

const kinds = (): readonly Kind[] => [
  {
    kind: 'SandboxTemplate',
    plural: 'sandboxtemplates',
    shortNames: ['sbt'],
    scope: 'Cluster',
    description: 'What the instances of a pool are started from.',
    spec: templateSpec(),
    resolved: structuralOf(ResolvedTemplateSchema),
    conditions: true,
    rules: [IS_LABEL, KEEPS_RESOLVED],
    columns: [
      { name: 'Version', type: 'string', jsonPath: '.resolved.version' },
      { name: 'Description', type: 'string', jsonPath: '.spec.description', priority: 1 },
      PROBLEM,
      AGE,
    ],
  },
  {
    kind: 'SandboxPool',
    plural: 'sandboxpools',
    shortNames: ['sbp'],
    scope: 'Namespaced',
    description: 'Keeps a number of instances of a template ready to be claimed.',
    spec: poolSpec(),
    resolved: structuralOf(ResolvedPoolSchema),
    conditions: true,
    status: POOL_STATUS,
    scale: true,
    rules: [IS_LABEL, KEEPS_RESOLVED, KEEPS_SEAL],
    columns: [
      READY,
      IDLE,
      RUNNING,
      { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
      { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
      { name: 'Template', type: 'string', jsonPath: '.spec.templateName' },
      { name: 'Team', type: 'string', jsonPath: '.resolved.team' },
      { name: 'User', type: 'string', jsonPath: '.resolved.user' },
      PROBLEM,
      AGE,
    ],
  },
  {
    kind: 'SandboxEnv',
    plural: 'sandboxenvs',
    shortNames: ['sbe'],
    scope: 'Namespaced',
    description: 'A template with overrides, and the pools that are created from it and sized.',
    spec: envSpec(),
    resolved: structuralOf(ResolvedEnvSchema),
    conditions: true,
    status: ENV_STATUS,
    rules: [IS_LABEL, KEEPS_RESOLVED, KEEPS_SEAL],
    columns: [
      READY,
      IDLE,
      RUNNING,
      { name: 'Members', type: 'integer', jsonPath: '.status.memberCount' },
      { name: 'Template', type: 'string', jsonPath: '.spec.templateRef.name' },
      { name: 'Team', type: 'string', jsonPath: '.resolved.team' },
      { name: 'User', type: 'string', jsonPath: '.resolved.user' },
      PROBLEM,
      AGE,
    ],
  },
  {
    kind: 'Sandbox',
    plural: 'sandboxes',
    shortNames: ['sbx'],
    scope: 'Namespaced',
    description:
      'The record of one instance, from its birth to its end. Deleting it ends the sandbox.',
    spec: sandboxSpec(),
    conditions: false,
    rules: [],
    columns: [
      { name: 'State', type: 'string', jsonPath: '.spec.state' },
      { name: 'Pool', type: 'string', jsonPath: '.spec.poolName' },
      { name: 'User', type: 'string', jsonPath: '.spec.claim.user' },
      { name: 'Claimed', type: 'date', jsonPath: '.spec.claim.claimedAt' },
      AGE,
    ],
  },
  {
    kind: 'ApiKey',
    plural: 'apikeys',
    shortNames: ['sbk'],
    scope: 'Namespaced',
    description: 'An API key, without its secret. One that no daemon sealed is none.',
    spec: apiKeySpec(),
    conditions: true,
    rules: [IS_LABEL],
    columns: [
      { name: 'Team', type: 'string', jsonPath: '.spec.team' },
      { name: 'User', type: 'string', jsonPath: '.spec.user' },
      { name: 'Role', type: 'string', jsonPath: '.spec.role' },
      { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
      PROBLEM,
      AGE,
    ],
  },
  {
    kind: 'Approval',
    plural: 'approvals',
    shortNames: ['sba'],
    scope: 'Namespaced',
    description:
      'A request that waits for a person, or waited. One that no daemon sealed grants nothing.',
    spec: approvalSpec(),
    conditions: false,
    rules: [],
    columns: [
      { name: 'Status', type: 'string', jsonPath: '.spec.status' },
      { name: 'Operation', type: 'string', jsonPath: '.spec.operation' },
      { name: 'User', type: 'string', jsonPath: '.spec.principal.user' },
      { name: 'Decided by', type: 'string', jsonPath: '.spec.decidedBy' },
      AGE,
    ],
  },
  {
    kind: 'UserQuota',
    plural: 'userquotas',
    shortNames: ['sbq'],
    scope: 'Namespaced',
    description:
      'What one user of a team may have. A limit that is left out is what the daemons are configured with.',
    spec: userQuotaSpec(),
    conditions: true,
    rules: [
      {
        rule: "self.metadata.name == self.spec.team + '.' + self.spec.user",
        message: 'the name must be {team}.{user}, as spec.team and spec.user say',
      },
    ],
    columns: [
      { name: 'Team', type: 'string', jsonPath: '.spec.team' },
      { name: 'User', type: 'string', jsonPath: '.spec.user' },
      { name: 'Sandboxes', type: 'integer', jsonPath: '.spec.sandboxes' },
      { name: 'Pools', type: 'integer', jsonPath: '.spec.pools' },
      { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
      { name: 'CPU', type: 'string', jsonPath: '.spec.cpu' },
      { name: 'Memory', type: 'string', jsonPath: '.spec.memory' },
      AGE,
    ],
  },
  {
    kind: 'WorkerCluster',
    plural: 'workerclusters',
    shortNames: ['sbw'],
    scope: 'Cluster',
    description:
      'A cluster that may link to this manager. Deleting it shuts the cluster out; one that no daemon sealed may not link. ' +
      'At a worker, of itself: it has cut its managers off.',
    spec: workerClusterSpec(),
    conditions: false,
    rules: [IS_LABEL],
    columns: [
      { name: 'Joined', type: 'date', jsonPath: '.spec.joinedAt' },
      { name: 'CutOff', type: 'date', jsonPath: '.spec.cutOffAt', priority: 1 },
      AGE,
    ],
  },
];

const counts = (...names: readonly string[]): Structural =>
  Object.fromEntries(names.map((name) => [name, { type: 'integer' }]));

/** As in `GET /sandboxpools/{name}`. */
const POOL_STATUS: Structural = {
  phase: { type: 'string' },
  selector: { type: 'string' },
  ...counts(
    'replicas',
    'idleReplicas',
    'unavailableIdleReplicas',
    'runningReplicas',
    'startingReplicas',
    'stoppingReplicas',
    'failedReplicas',
    'updatedReplicas',
  ),
};
/** As in `GET /envs/{name}`. */
const ENV_STATUS = counts('memberCount', 'desiredReplicas', 'runningReplicas', 'idleReplicas');

const statusWith = (fields: Structural): Structural => ({
  type: 'object',
  properties: {
    ...fields,
    conditions: {
      type: 'array',
      maxItems: 16,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: {
        type: 'object',
        required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
        properties: {
          type: { type: 'string', maxLength: 316 },
          status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
          reason: { type: 'string', maxLength: 1_024 },
          message: { type: 'string', maxLength: 32_768 },
          observedGeneration: { type: 'integer', minimum: 0 },
          lastTransitionTime: { type: 'string', format: 'date-time' },
        },
      },
    },
  },
});

const SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
};

const manifestOf = ({
  kind,
  plural,
  shortNames,
  scope,
  description,
  spec,
  resolved,
  conditions,
  status,
  scale,
  rules,
  columns,
}: Kind): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: `${plural}.sandpool.dev`,
    annotations: { [DEFINITIONS_ANNOTATION]: String(DEFINITIONS_VERSION) },
  },
  spec: {
    group: 'sandpool.dev',
    scope,
    names: {
      kind,
      listKind: `${kind}List`,
      plural,
      singular: kind.toLowerCase(),
      shortNames,
      categories: ['sandpool'],
    },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        ...(conditions ? { subresources: { status: {}, ...(scale ? { scale: SCALE } : {}) } } : {}),
        additionalPrinterColumns: columns,
        schema: {
          openAPIV3Schema: withDescriptions(kind, {
            type: 'object',
            description,
            required: ['spec'],
            properties: {
              apiVersion: { type: 'string' },
              kind: { type: 'string' },
              metadata: { type: 'object' },
              spec,
              ...(resolved
                ? { resolved: { description: 'Filled in by Sandpool.', ...resolved } }
                : {}),
              ...(conditions ? { status: statusWith(status ?? {}) } : {}),
            },
            ...(rules.length > 0 ? validations(...rules) : {}),
          }),
        },
      },
    ],
  },
});

const withDescriptions = (kind: string, schema: Structural): Structural => {
  const own = structuredClone(schema);
  described(own, [kind]);
  return own;
};

export const crdFiles = (): ReadonlyMap<string, string> =>
  new Map(
    kinds().map((kind) => [
      `${FOLDER}${kind.plural}.yaml`,
      HEADER +
        stringify(manifestOf(kind), {
          version: '1.1',
          lineWidth: 140,
          aliasDuplicateObjects: false,
        }),
    ]),
  );

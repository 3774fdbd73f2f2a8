import type { Grants } from '../../contracts/grants.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import type { RecordStore } from '../../contracts/record-store.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import type { InstanceType } from '../../model/templates/instance-type.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import type { ClusterRecord } from '../../model/fleet/cluster.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import type { UserQuota } from '../../model/pools/quota.ts';
import type { SourceTerms } from '../../model/pools/source-terms.ts';
import type { InstanceDefinition, TemplateRecord } from '../../model/templates/template.ts';
import type { ApiServer } from '../api/api-calls.ts';
import { approvalResource } from './approval-resource.ts';
import { apiKeyResource } from './api-key-resource.ts';
import { envResource } from './env-resource.ts';
import { poolResource } from './pool-resource.ts';
import type { OutdatedReport } from '../api/resource.ts';
import { ResourceRecords } from './resource-records.ts';
import type { Seals } from '../api/seals.ts';
import { templateResource } from './template-resource.ts';
import { userQuotaResource } from './user-quota-resource.ts';
import { POOL_LABEL } from '../sandboxes/sandbox-resource.ts';
import { workerClusterResource } from './worker-cluster-resource.ts';

export interface KubernetesRecordStoreDeps {
  readonly api: ApiServer;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Milliseconds since the epoch, as the API server has it. */
  readonly now: () => number;
  readonly lookups: RecordLookups;
  /** Lets pools made or resized by hand take what their owners' quotas allow. */
  readonly grants: Grants<PoolRecord>;
  /** By which daemons know what they wrote. */
  readonly seals: Seals;
  /** Told of each object of a later version: while there is one this replica must lead nothing. */
  readonly outdated: OutdatedReport;
}

/** Says what objects made by hand are filled in and checked with. */
export interface RecordLookups {
  readonly instanceType: (name: string) => InstanceType | undefined;
  /** Says what owners of pools may say themselves; absent: see RenderLookups. */
  readonly terms?: SourceTerms;
  /** Throws DefinitionRefused where the driver can't run it. */
  readonly check: (definition: InstanceDefinition) => void;
  /** The team of a namespace; undefined where it is none's. */
  readonly teamOf: (namespace: string) => string | undefined;
  /** This cluster, of members that name none. */
  readonly clusterId: string;
}

/**
 * Templates, pools, envs, API keys, approvals, users' quotas and worker clusters as custom
 * resources. What is made by kubectl is taken in like what is made over REST, once a replica has
 * filled in what only a daemon knows; a pool waits for its template. Writes
 * reject with a Refusal where the API server is out of reach or the namespace is missing.
 */
export class KubernetesRecordStore implements RecordStore {
  readonly templates: ResourceRecords<TemplateRecord>;
  readonly pools: ResourceRecords<PoolRecord>;
  readonly envs: ResourceRecords<EnvRecord>;
  readonly apiKeys: ResourceRecords<ApiKeyRecord>;
  readonly approvals: ResourceRecords<ApprovalRecord>;
  readonly quotas: ResourceRecords<UserQuota>;
  readonly clusters: ResourceRecords<ClusterRecord>;

  constructor({
    lookups: { check, teamOf, instanceType, terms, clusterId },
    seals,
    grants,
    ...deps
  }: KubernetesRecordStoreDeps) {
    this.templates = new ResourceRecords({ ...deps, resource: templateResource({ check }) });
    const template = (name: string): TemplateRecord | undefined => this.templates.shown(name);
    this.pools = new ResourceRecords({
      ...deps,
      resource: poolResource({
        template,
        instanceType,
        terms,
        check,
        teamOf,
        seals,
        grants,
        now: deps.now,
      }),
    });
    this.envs = new ResourceRecords({
      ...deps,
      resource: envResource({ teamOf, clusterId, seals, now: deps.now }),
    });
    this.apiKeys = new ResourceRecords({
      ...deps,
      resource: apiKeyResource({ seals, teamOf, now: deps.now }),
    });
    this.approvals = new ResourceRecords({
      ...deps,
      resource: approvalResource({ seals, teamOf }),
    });
    this.quotas = new ResourceRecords({ ...deps, resource: userQuotaResource({ teamOf }) });
    this.clusters = new ResourceRecords({ ...deps, resource: workerClusterResource({ seals }) });
  }

  /** Resolves once templates and quotas are known; pools made by hand need them. */
  async start(): Promise<void> {
    await Promise.all([
      this.templates.watch(() => {
        this.pools.lookAgain();
      }),
      this.quotas.watch(({ record }) => {
        this.pools.lookAgain(record.namespace);
      }),
    ]);
  }

  /** The kinds whose status is published. */
  get published() {
    const { pools, envs } = this;
    return {
      pool: {
        kind: 'SandboxPool',
        plural: 'sandboxpools',
        standing: pools.standing,
        // What the scale subresource names Pods by.
        added: (uid: string) => ({ selector: `${POOL_LABEL}=${uid}` }),
      },
      env: {
        kind: 'SandboxEnv',
        plural: 'sandboxenvs',
        standing: envs.standing,
        added: () => ({}),
      },
    };
  }

  /** Why this replica must not be relied on, for readiness. */
  get problems(): readonly string[] {
    return this.#followed().flatMap(({ problems }) => problems);
  }

  reflectors(): readonly MirrorReport[] {
    return this.#followed().map((records) => records.report());
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#always(), this.clusters].map((records) => records.stop()));
  }

  /** Every kind that this replica mirrors; clusters where it is in a fleet. */
  #followed() {
    return this.clusters.isFollowed ? [...this.#always(), this.clusters] : this.#always();
  }

  #always() {
    const { templates, pools, envs, apiKeys, approvals, quotas } = this;
    return [templates, pools, envs, apiKeys, approvals, quotas];
  }
}

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
  readonly now: () => number;
  readonly lookups: RecordLookups;
  readonly grants: Grants<PoolRecord>;
  readonly seals: Seals;
  /** While an object of a later version exists, this replica must not lead anything. */
  readonly outdated: OutdatedReport;
}

export interface RecordLookups {
  readonly instanceType: (name: string) => InstanceType | undefined;
  readonly terms?: SourceTerms;
  /** Throws DefinitionRefused if the driver cannot run it. */
  readonly check: (definition: InstanceDefinition) => void;
  readonly teamOf: (namespace: string) => string | undefined;
  readonly clusterId: string;
}

/**
 * Objects made by kubectl become records once a replica has added the daemon's part. Writes reject
 * with a Refusal if the API server is unreachable or the namespace is missing.
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

  /** Resolves once templates and quotas are known, which hand-made pools need. */
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

  get published() {
    const { pools, envs } = this;
    return {
      pool: {
        kind: 'SandboxPool',
        plural: 'sandboxpools',
        standing: pools.standing,
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

  get problems(): readonly string[] {
    return this.#followed().flatMap(({ problems }) => problems);
  }

  reflectors(): readonly MirrorReport[] {
    return this.#followed().map((records) => records.report());
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#always(), this.clusters].map((records) => records.stop()));
  }

  #followed() {
    return this.clusters.isFollowed ? [...this.#always(), this.clusters] : this.#always();
  }

  #always() {
    const { templates, pools, envs, apiKeys, approvals, quotas } = this;
    return [templates, pools, envs, apiKeys, approvals, quotas];
  }
}

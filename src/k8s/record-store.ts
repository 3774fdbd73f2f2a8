import type { Log } from '../contracts/log.ts';
import type { RecordStore } from '../contracts/record-store.ts';
import type { ApiKeyRecord } from '../model/api-key.ts';
import type { PoolRecord } from '../model/pool.ts';
import type { InstanceDefinition, TemplateRecord } from '../model/template.ts';
import type { ApiServer } from './api-client.ts';
import { apiKeyResource } from './api-key-resource.ts';
import { poolResource } from './pool-resource.ts';
import { ResourceRecords } from './resource-records.ts';
import { templateResource } from './template-resource.ts';

export interface KubernetesRecordStoreDeps {
  readonly api: ApiServer;
  readonly log: Log;
  /** Milliseconds since the epoch, as the API server has it. */
  readonly now: () => number;
  /** Throws DefinitionRefused where the driver can't run it. */
  readonly check: (definition: InstanceDefinition) => void;
  /** The team of a namespace; undefined where it is none's. */
  readonly teamOf: (namespace: string) => string | undefined;
  /** Told that an object of a later format is there: then this replica must lead nothing. */
  readonly outdated: (why: string) => void;
}

/**
 * Templates, pools and API keys as custom resources. What is made by kubectl is taken in like what is made over REST, once a
 * replica has filled in what only a daemon knows; a pool waits for its template. Writes reject with a Refusal where the API
 * server is out of reach or the namespace is missing.
 */
export class KubernetesRecordStore implements RecordStore {
  readonly templates: ResourceRecords<TemplateRecord>;
  readonly pools: ResourceRecords<PoolRecord>;
  readonly apiKeys: ResourceRecords<ApiKeyRecord>;

  constructor({ check, teamOf, ...deps }: KubernetesRecordStoreDeps) {
    this.templates = new ResourceRecords({ ...deps, resource: templateResource({ check }) });
    const template = (name: string): TemplateRecord | undefined => this.templates.shown(name);
    this.pools = new ResourceRecords({ ...deps, resource: poolResource({ template, check, teamOf, now: deps.now }) });
    this.apiKeys = new ResourceRecords({ ...deps, resource: apiKeyResource });
  }

  /** Resolves once templates are known; pools made by hand need them. */
  async start(): Promise<void> {
    await this.templates.watch(() => { this.pools.lookAgain(); });
  }

  /** Why this replica must not be relied on, for readiness. */
  get problems(): readonly string[] {
    return [...this.templates.problems, ...this.pools.problems, ...this.apiKeys.problems];
  }

  async stop(): Promise<void> {
    await Promise.all([this.templates.stop(), this.pools.stop(), this.apiKeys.stop()]);
  }
}

import type {
  CallOptions,
  OperationAnswer,
  OperationId,
  OperationInput,
} from './operation-request.ts';
import type {
  AdminApiKeyRequest,
  ApiKey,
  ApiKeyDeletion,
  ApiKeysDeletion,
  Cascade,
  DeletedKeysQuery,
  ApiKeyPromotion,
  ApiKeyRequest,
  Approval,
  ApprovalInFull,
  AuditPage,
  AuditQuery,
  ClusterList,
  FeatureGates,
  InstanceTypeList,
  IssuedApiKey,
  LogLevelReport,
  LogLevelRequest,
  Managers,
  TemplateClusterList,
  ManagersRequest,
  Page,
  PageRequest,
  QuotaChange,
  QuotaList,
  SandboxStatistics,
  VolumeList,
} from './wire.ts';

/** Names one cluster of a fleet; left out, all of it is meant. */
export interface OfCluster {
  readonly clusterID?: string;
}

/** Calls the operations on keys, quotas, the audit, the log, and on what a deployment offers. */
export abstract class AccountCalls {
  protected abstract call<K extends OperationId>(
    id: K,
    input: OperationInput<K>,
    options?: CallOptions,
  ): Promise<OperationAnswer<K>>;

  async createApiKey(request: ApiKeyRequest = {}, options?: CallOptions): Promise<IssuedApiKey> {
    return await this.call('createApiKey', { body: request }, options);
  }

  /** Needs a key with the admin role. */
  async createApiKeyForTenant(
    request: AdminApiKeyRequest,
    options?: CallOptions,
  ): Promise<IssuedApiKey> {
    return await this.call('createApiKeyForTenant', { body: request }, options);
  }

  /** Lists one's own requests that wait for a person, or waited; for an admin everybody's. */
  async listApprovals(
    filter: OperationInput<'listApprovals'>['query'] = {},
    options?: CallOptions,
  ): Promise<Page<Approval>> {
    return await this.call('listApprovals', { query: filter }, options);
  }

  async getApproval(approvalId: string, options?: CallOptions): Promise<ApprovalInFull> {
    return await this.call('getApproval', { params: { approvalId } }, options);
  }

  async listApiKeys(page: PageRequest = {}, options?: CallOptions): Promise<Page<ApiKey>> {
    return await this.call('listApiKeys', { query: page }, options);
  }

  /** Needs a key with the admin role, as the next but one does. */
  async listAllApiKeys(page: PageRequest = {}, options?: CallOptions): Promise<Page<ApiKey>> {
    return await this.call('listAllApiKeys', { query: page }, options);
  }

  /** The newest first. Needs a key with the admin role, as the next two do. */
  async listAudit(query: AuditQuery = {}, options?: CallOptions): Promise<AuditPage> {
    return await this.call('listAudit', { query }, options);
  }

  async getLogLevel(options?: CallOptions): Promise<LogLevelReport> {
    return await this.call('getLogLevel', {}, options);
  }

  async setLogLevel(request: LogLevelRequest, options?: CallOptions): Promise<LogLevelReport> {
    return await this.call('setLogLevel', { body: request }, options);
  }

  /** Shows how each cluster of a fleet stands to a global template, for an admin. */
  async listTemplateClusters(name: string, options?: CallOptions): Promise<TemplateClusterList> {
    return await this.call('listTemplateClusters', { params: { name } }, options);
  }

  /** Needs a key with the admin role, as the next one does. */
  async getManagers(options?: CallOptions): Promise<Managers> {
    return await this.call('getManagers', {}, options);
  }

  async setManagers(request: ManagersRequest, options?: CallOptions): Promise<Managers> {
    return await this.call('setManagers', { body: request }, options);
  }

  async deleteApiKey(
    keyId: string,
    query: Cascade = {},
    options?: CallOptions,
  ): Promise<ApiKeyDeletion> {
    return await this.call('deleteApiKey', { params: { keyId }, query }, options);
  }

  /** `{namespace}/{shortName}` */
  async deleteApiKeyByName(
    name: string,
    query: Cascade = {},
    options?: CallOptions,
  ): Promise<ApiKeyDeletion> {
    return await this.call('deleteApiKeyByName', { params: { name }, query }, options);
  }

  /** All keys of a user. */
  async deleteApiKeysOf(query: DeletedKeysQuery, options?: CallOptions): Promise<ApiKeysDeletion> {
    return await this.call('deleteApiKeysOf', { query }, options);
  }

  /** Promotes a key to all clusters; always refused, as no worker cluster can be told yet. */
  async promoteApiKey(name: string, options?: CallOptions): Promise<ApiKeyPromotion> {
    return await this.call('promoteApiKey', { params: { name } }, options);
  }

  /** Lists the caller's quotas: what the caller may have, and has. */
  async getQuotas(query: OfCluster = {}, options?: CallOptions): Promise<QuotaList> {
    return await this.call('getQuotas', { query }, options);
  }

  /** Gets the quotas of any user. Needs a key with the admin role, as `setQuotasOf` does. */
  async getQuotasOf(
    team: string,
    user: string,
    query: OfCluster = {},
    options?: CallOptions,
  ): Promise<QuotaList> {
    return await this.call('getQuotasOf', { params: { team, user }, query }, options);
  }

  /**
   * Changes the quotas of any user, at a manager on the cluster that is named, or its own; those
   * that are left out stay as they are.
   */
  async setQuotasOf(
    team: string,
    user: string,
    { clusterID, ...body }: QuotaChange & OfCluster,
    options?: CallOptions,
  ): Promise<QuotaList> {
    const query = clusterID === undefined ? {} : { clusterID };
    return await this.call('setQuotasOf', { params: { team, user }, query, body }, options);
  }

  async listInstanceTypes(query: OfCluster = {}, options?: CallOptions): Promise<InstanceTypeList> {
    return await this.call('listInstanceTypes', { query }, options);
  }

  /** Lists the volumes that `overrides.volumes` of the caller's pools may name. */
  async listVolumes(query: OfCluster = {}, options?: CallOptions): Promise<VolumeList> {
    return await this.call('listVolumes', { query }, options);
  }

  async getFeatureGates(options?: CallOptions): Promise<FeatureGates> {
    return await this.call('getFeatureGates', {}, options);
  }

  async listClusters(options?: CallOptions): Promise<ClusterList> {
    return await this.call('listClusters', {}, options);
  }

  /** Needs a key with the admin role. */
  async getSandboxStatistics(
    query: OfCluster = {},
    options?: CallOptions,
  ): Promise<SandboxStatistics['statistics'] & Pick<SandboxStatistics, 'incomplete'>> {
    const { statistics, ...rest } = await this.call('getSandboxStatistics', { query }, options);
    return { ...statistics, ...rest };
  }
}

import type { EventFeed } from '../actors/runtime/event-feed.ts';
import type { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { AuditTrail } from '../services/audit/audit-trail.ts';
import type { Assembly } from './assembly/assembly.ts';
import type { Config } from './config/config.ts';
import { sourceTerms } from './config/source-terms.ts';
import type { InstanceTypes } from '../contracts/instance-types.ts';
import type { LevelledLog } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import type { ApprovalsOfDaemon } from './assembly/approvals.ts';
import type { EnvParts } from './envs.ts';
import type { FleetOperationParts } from './fleet/fleet.ts';
import { inspectedKinds } from './inspection.ts';
import type { TlsFiles } from '../http/server/tls-files.ts';
import { namespaceOf } from './assembly/namespaces.ts';
import type { ApiKeyMirror } from '../services/keys/api-keys.ts';
import {
  createTemplate,
  deleteTemplate,
  updateTemplate,
} from '../services/templates/change-templates.ts';
import { authentication } from '../services/keys/authenticate.ts';
import { catalogue } from '../services/templates/catalogue.ts';
import { debug } from '../services/debug/debug.ts';
import { logLevels } from '../services/debug/log-levels.ts';
import { v7 } from 'uuid';
import { processOperations } from '../services/processes/processes.ts';
import { requestOperations } from '../actors/request/request-operations.ts';
import { runningSandboxes } from '../services/processes/running-sandboxes.ts';
import { ClaimEnv } from '../actors/sandbox/claim-env.ts';
import { openAndFind } from '../actors/claim/earlier-claim.ts';
import { claimSandbox } from '../actors/claim/claim-sandbox.ts';
import { createApiKey, createApiKeyForTenant } from '../services/keys/create-api-key.ts';
import { findPoolByKey, createPool } from '../actors/pool/commands/create-pool.ts';
import { deleteSandbox } from '../actors/sandbox/commands/delete-sandbox.ts';
import { execInSandbox } from '../actors/sandbox/commands/exec-in-sandbox.ts';
import { followEvents } from '../actors/sandbox/commands/follow-events.ts';
import { fileOperations } from '../services/files/files.ts';
import { filesInSandboxes } from '../services/files/files-in-sandboxes.ts';
import { getSandbox } from '../actors/sandbox/commands/get-sandbox.ts';
import { hostNetworkWarning } from '../actors/pool/commands/host-network.ts';
import { isReady } from '../actors/sandbox/commands/is-ready.ts';
import {
  deleteApiKey,
  deleteApiKeyByName,
  deleteApiKeysOf,
  getApiKey,
  keyIdOf,
  listAllApiKeys,
  listApiKeys,
} from '../services/keys/list-api-keys.ts';
import { listAudit } from '../services/debug/list-audit.ts';
import { listSandboxes } from '../actors/sandbox/commands/list-sandboxes.ts';
import { listShards } from '../services/debug/list-shards.ts';
import { endpointOperations } from '../actors/sandbox/commands/open-endpoint.ts';
import type { Operations } from '../services/operations.ts';
import type { Caller } from '../model/tenant.ts';
import { poolEvents } from '../actors/pool/commands/pool-events.ts';
import { deletePool, getPool, listPools } from '../actors/pool/commands/pools.ts';
import { guests } from '../services/keys/guests.ts';
import { sandboxTokens } from '../services/keys/sandbox-tokens.ts';
import { signedLinks } from '../services/keys/signed-links.ts';
import { templateClusters } from '../fleet/replication/template-clusters.ts';
import { promoteApiKey, toldToWorkers } from '../services/keys/promote-api-key.ts';
import type { QuotaLimits } from '../actors/pool/commands/quota-limits.ts';
import { getQuotas, getQuotasOf, setQuotasOf } from '../actors/pool/commands/quotas.ts';
import { sandboxEvents } from '../actors/sandbox/commands/sandbox-events.ts';
import { followSandboxLogs, sandboxLogs } from '../actors/sandbox/commands/sandbox-logs.ts';
import { sandboxStatistics } from '../actors/sandbox/commands/sandbox-statistics.ts';
import { setSandboxState } from '../actors/sandbox/commands/set-sandbox-state.ts';
import { sandboxAmendments } from '../actors/sandbox/commands/amend-sandbox.ts';
import { previewPoolSync, syncPool } from '../actors/pool/commands/sync-pool.ts';
import type { TemplateCatalog } from '../actors/pool/template-catalog.ts';
import { getTemplate, listTemplates } from '../services/templates/templates.ts';
import { createExecToken, openTerminal } from '../actors/sandbox/commands/terminals.ts';
import { PendingRequests } from '../actors/claim/pending-requests.ts';
import { updatePool } from '../actors/pool/commands/update-pool.ts';
import { idAt } from './ids.ts';
import { readinessOf } from './readiness.ts';

export interface OperationParts {
  readonly parts: Assembly;
  readonly tls: TlsFiles | undefined;
  readonly audit: AuditTrail | undefined;
  readonly life: { readonly replica: string; readonly stopping: boolean };
  readonly mirrors: RecordMirrors;
  readonly supervisor: Supervisor;
  readonly events: EventFeed;
  readonly envs: EnvParts;
  readonly approvals: ApprovalsOfDaemon;
  readonly metrics: Metrics;
}

export interface RecordMirrors {
  readonly apiKeys: ApiKeyMirror;
  readonly quotaLimits: QuotaLimits;
  readonly templates: TemplateCatalog;
  readonly types: InstanceTypes;
  readonly fleet: FleetOperationParts;
}

export const operationsOf = (
  config: Config,
  log: LevelledLog,
  given: OperationParts,
): Operations => {
  const { parts, tls, audit, life, supervisor, envs, approvals } = given;
  const { fleet } = given.mirrors;
  const { clock, driver, coordination } = parts;
  const shared = sharedOf(config, log, given);
  return {
    ...requestOperations(coordination),
    ...approvals.operations,
    ...keyOperations(shared),
    ...claimOperations(shared),
    ...sandboxOperations(shared),
    ...insideOperations(shared),
    ...poolOperations(shared),
    ...envs.operations,
    ...templateOperations(shared),
    ...fleet.managers,
    ...fileOperations(filesInSandboxes({ supervisor, driver, clock })),
    ...debugOperations(shared),
    readiness: () =>
      readinessOf(
        parts,
        [audit?.problem, tls?.problem, hostNetworkWarning(supervisor), fleet.warning()],
        life.stopping,
      ),
  };
};

type Shared = ReturnType<typeof sharedOf>;

const sharedOf = (config: Config, log: LevelledLog, given: OperationParts) => {
  const { parts, supervisor, envs } = given;
  const { apiKeys, quotaLimits, templates, types, fleet } = given.mirrors;
  const { clock, driver, coordination, pepper } = parts;
  return {
    config,
    log,
    given,
    common: { supervisor, driver, coordination, clock, quotaLimits, envs: envs.mirror },
    keys: {
      apiKeys,
      quotaLimits,
      pepper,
      clock,
      coordination,
      namespaceOf: (team: string) => namespaceOf(config.namespacePattern, team),
      defaultLifetimeMs: config.keys.defaultLifetime,
      maxLifetimeMs: config.keys.maxLifetime,
      creation: config.keys.creation,
      isLinked: (caller: Caller) => fleet.callers?.came(caller) ?? false,
    },
    rendering: {
      templates,
      types,
      volumes: parts.volumes,
      driver,
      terms: sourceTerms(config),
    },
    claimEnv: new ClaimEnv(pepper),
    background: (name: string, work: Promise<void>): void => {
      work.catch((error: unknown) => {
        log.error({ work: name, error }, 'background-work-failed');
      });
    },
  };
};

const keyOperations = ({ common, keys, given }: Shared) => {
  const { apiKeys } = keys;
  const { promotions } = given.mirrors.fleet;
  const tokens = sandboxTokens(keys);
  return {
    ...authentication(keys),
    ...tokens,
    ...guests(common),
    signerOf: signedLinks({ ...common, apiKeys, tokensOf: tokens.sandboxTokens }),
    getApiKey: getApiKey(keys),
    keyIdOf: keyIdOf(keys),
    createApiKey: createApiKey(keys),
    createApiKeyForTenant: createApiKeyForTenant(keys),
    listApiKeys: listApiKeys(keys),
    listAllApiKeys: listAllApiKeys(keys),
    deleteApiKey: toldToWorkers(promotions, deleteApiKey(keys)),
    deleteApiKeyByName: toldToWorkers(promotions, deleteApiKeyByName(keys)),
    deleteApiKeysOf: toldToWorkers(promotions, deleteApiKeysOf(keys)),
    promoteApiKey: promoteApiKey({ apiKeys, promotions }),
    followKey: (keyId, ended) => apiKeys.followEnd(keyId, ended),
    getQuotas: getQuotas(keys),
    getQuotasOf: getQuotasOf(keys),
    setQuotasOf: setQuotasOf(keys),
  } satisfies Partial<Operations>;
};

const claimOperations = ({ common, rendering, claimEnv, background, given }: Shared) => {
  const pendingRequests = new PendingRequests();
  const { supervisor, clock } = common;
  return {
    claimSandbox: claimSandbox({
      ...common,
      claimEnv,
      allowedImages: rendering.terms.images,
      demand: given.envs.demand,
      metrics: given.metrics,
      pendingRequests,
      background,
    }),
    pendingClaim: (mark) => pendingRequests.settled(mark),
    claimedBefore: (caller, opening) =>
      openAndFind({ supervisor, clock, pendingRequests }, caller, opening),
  } satisfies Partial<Operations>;
};

const sandboxOperations = ({ config, common, given }: Shared) => {
  const { events } = given;
  const { history } = given.parts;
  return {
    getSandbox: getSandbox({ ...common, endpointMode: config.endpoints.mode }),
    listSandboxes: listSandboxes({ ...common, history, listWindowMs: config.history.listWindow }),
    deleteSandbox: deleteSandbox(common),
    ...sandboxAmendments(common),
    setSandboxState: setSandboxState(common),
    sandboxLogs: sandboxLogs({ ...common, history }),
    followSandboxLogs: followSandboxLogs({ ...common, history }),
    sandboxEvents: sandboxEvents({ ...common, history, events }),
    sandboxStatistics: sandboxStatistics({ ...common, history }),
    isReady: isReady(common),
    poolEvents: poolEvents({ ...common, events }),
    followEvents: followEvents({ events }),
  } satisfies Partial<Operations>;
};

const insideOperations = ({ config, common, claimEnv, given }: Shared) => {
  const { supervisor, driver, clock } = common;
  const { apiKeys: all, fleet } = given.mirrors;
  const apiKeys = fleet.callers?.besides(all) ?? all;
  const { clusterId } = config;
  return {
    execInSandbox: execInSandbox({ ...common, claimEnv }),
    ...processOperations({
      sandboxes: runningSandboxes({ supervisor, clock, claimEnv }),
      driver,
      clock,
      newId: v7,
    }),
    createExecToken: createExecToken({ ...common, apiKeys, clusterId }),
    openTerminal: openTerminal({
      ...common,
      claimEnv,
      apiKeys,
      clusterId,
      mostOfTenant: config.limits.terminalsOfTenant,
    }),
    ...endpointOperations({ ...common, claimEnv }),
  } satisfies Partial<Operations>;
};

const poolOperations = ({ common, rendering, background, given }: Shared) => {
  const { records, pullSecrets } = given.parts;
  const syncing = { ...common, ...rendering };
  return {
    createPool: createPool({
      ...syncing,
      pools: records.pools,
      newUid: () => idAt(common.clock.now()),
      pullSecrets,
      background,
    }),
    findPoolByKey: findPoolByKey(common),
    getPool: getPool(common),
    listPools: listPools(common),
    updatePool: updatePool({ ...syncing, pullSecrets }),
    syncPool: syncPool(syncing),
    previewPoolSync: previewPoolSync(syncing),
    deletePool: deletePool(common),
  } satisfies Partial<Operations>;
};

const templateOperations = ({ config, common, given }: Shared) => {
  const { parts, mirrors } = given;
  const { templates, types, fleet } = mirrors;
  const { driver, clock } = common;
  const changing = { ...parts.records, ...common, ...fleet };
  return {
    getTemplate: getTemplate(parts.records),
    listTemplates: listTemplates({ catalog: templates }),
    createTemplate: createTemplate(changing),
    updateTemplate: updateTemplate(changing),
    deleteTemplate: deleteTemplate(changing),
    templateClusters: templateClusters({
      clock,
      templates: parts.records.templates,
      links: fleet.templateLinks,
    }),
    ...catalogue({
      instanceTypes: types,
      volumes: parts.volumes,
      driver,
      clock,
      clusterId: config.clusterId,
      listOthers: fleet.listShown,
      hasConsole: config.console.mode === 'on',
      holdsRequests: config.approvals.rules.length > 0,
      servesCompatibleApi: config.compatibleApi.listen !== 'none',
    }),
  } satisfies Partial<Operations>;
};

const debugOperations = ({ log, common, given }: Shared) => {
  const { parts, audit, approvals, supervisor, envs } = given;
  const { replica } = given.life;
  return {
    listAudit: listAudit({ recent: audit && parts.recentAudit }),
    shards: listShards({ ...common, replica }),
    ...debug({
      ...common,
      replica,
      reflectors: () => parts.reflectors(),
      webhooks: () => approvals.webhooks?.report() ?? [],
      kinds: inspectedKinds({ parts, supervisor, envs, approvals }),
    }),
    ...logLevels({ log, clock: common.clock, replica }),
  } satisfies Partial<Operations>;
};

import { getHeapStatistics } from 'node:v8';
import { v7 } from 'uuid';
import { EnvMirror } from '../actors/env/env-mirror.ts';
import { EventFeed } from '../actors/runtime/event-feed.ts';
import { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Assembly, AssemblyTerms } from './assembly.ts';
import type { Config } from '../config/config.ts';
import { readInstanceTypes } from '../config/instance-types.ts';
import { sourceTerms } from '../config/source-terms.ts';
import type { InstanceTypes } from '../contracts/instance-types.ts';
import type { LevelledLog } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import { ControlServer } from '../control/control-server.ts';
import { openAudit } from './audit.ts';
import { openEnvs, type EnvParts } from './envs.ts';
import { inspectedKinds } from './inspection.ts';
import { openMetrics, registerGauges, type MetricsParts } from './metrics.ts';
import { policyOf } from './policy.ts';
import type { RunnableDaemon } from '../process/run-daemon.ts';
import { makeDefaultEnv } from './default-env.ts';
import { openTracing } from './tracing.ts';
import { openEmbedded } from './embedded.ts';
import { clientsOf } from '../http/limits/clients.ts';
import { createGateway, type Gateway } from '../http/gateway/gateway.ts';
import { createHttpServer, type HttpServer } from '../http/server/http-server.ts';
import type { TlsIdentity } from '../http/server/listener.ts';
import type { FrameBudgetTerms } from '../http/terminal/frame-budget.ts';
import { KeyRates } from '../http/limits/key-rates.ts';
import { terminalUpgrades, type TerminalUpgrades } from '../http/terminal/terminal.ts';
import { TlsFiles } from '../http/server/tls-files.ts';
import { WaitingServer } from '../http/server/waiting-server.ts';
import { openKubernetes } from './kubernetes.ts';
import { measuredDriver } from '../metrics/measured-driver.ts';
import { renderDefinition } from '../model/pools/render-definition.ts';
import { namespaceOf } from './namespaces.ts';
import { AnswerBudget } from '../operations/sandboxes/answer-budget.ts';
import { ApiKeyMirror } from '../operations/keys/api-keys.ts';
import { authentication } from '../operations/keys/authenticate.ts';
import { catalogue } from '../operations/templates/catalogue.ts';
import {
  createTemplate,
  deleteTemplate,
  updateTemplate,
} from '../operations/templates/change-templates.ts';
import { ClaimEnv } from '../operations/claims/claim-env.ts';
import { claimSandbox } from '../operations/claims/claim-sandbox.ts';
import { createApiKey, createApiKeyForTenant } from '../operations/keys/create-api-key.ts';
import { findPoolByKey, createPool } from '../operations/pools/create-pool.ts';
import { debug } from '../operations/debug/debug.ts';
import { deleteSandbox } from '../operations/sandboxes/delete-sandbox.ts';
import { execInSandbox } from '../operations/sandboxes/exec-in-sandbox.ts';
import { processOperations } from '../operations/processes/processes.ts';
import { runningSandboxes } from '../operations/processes/running-sandboxes.ts';
import { followEvents } from '../operations/sandboxes/follow-events.ts';
import { getSandbox } from '../operations/sandboxes/get-sandbox.ts';
import { grantPools } from '../operations/pools/grant-pools.ts';
import { hostNetworkWarning } from '../operations/pools/host-network.ts';
import { instanceTypes } from '../operations/templates/instance-types.ts';
import { isReady } from '../operations/sandboxes/is-ready.ts';
import {
  deleteApiKey,
  deleteApiKeyByName,
  deleteApiKeysOf,
  listAllApiKeys,
  listApiKeys,
} from '../operations/keys/list-api-keys.ts';
import { listAudit } from '../operations/debug/list-audit.ts';
import { listSandboxes } from '../operations/sandboxes/list-sandboxes.ts';
import { listShards } from '../operations/debug/list-shards.ts';
import { loadTemplates } from '../operations/templates/load-templates.ts';
import { logLevels } from '../operations/debug/log-levels.ts';
import { openEndpoint } from '../operations/sandboxes/open-endpoint.ts';
import type { Operations, Readiness } from '../operations/operations.ts';
import { poolEvents } from '../operations/pools/pool-events.ts';
import { PoolRenewal } from '../operations/pools/pool-renewal.ts';
import { deletePool, getPool, listPools } from '../operations/pools/pools.ts';
import { promoteApiKey } from '../operations/keys/promote-api-key.ts';
import { quotaDefaults, QuotaLimits } from '../operations/pools/quota-limits.ts';
import { getQuotas, getQuotasOf, setQuotasOf } from '../operations/pools/quotas.ts';
import { sandboxEvents } from '../operations/sandboxes/sandbox-events.ts';
import { followSandboxLogs, sandboxLogs } from '../operations/sandboxes/sandbox-logs.ts';
import { sandboxStatistics } from '../operations/sandboxes/sandbox-statistics.ts';
import { setSandboxState } from '../operations/sandboxes/set-sandbox-state.ts';
import { setIdleTimeout } from '../operations/sandboxes/set-idle-timeout.ts';
import { previewPoolSync, syncPool } from '../operations/pools/sync-pool.ts';
import { TemplateCatalog } from '../operations/templates/template-catalog.ts';
import { getTemplate, listTemplates } from '../operations/templates/templates.ts';
import { createExecToken, openTerminal } from '../operations/sandboxes/terminals.ts';
import { PendingRequests } from '../operations/claims/pending-requests.ts';
import { updatePool } from '../operations/pools/update-pool.ts';

/** Holds what the process that runs the daemon gives it. */
export interface DaemonTerms {
  readonly log: LevelledLog;
  readonly replica: string;
  /**
   * Whether the address of the metrics was asked for, and is no mere default: then the daemon does
   * not start without it.
   */
  readonly metricsGiven?: boolean;
  /** Aborts once the process is told to stop; of no more use once this has resolved. */
  readonly stopped: AbortSignal;
}

/**
 * The composition root: which parts make a daemon is chosen here and nowhere else. Rejects with the
 * reason of `stopped` where it still waited for a part. `start` resolves once requests are
 * answered; `stop` takes no more, drains what is under way and leaves the sandboxes running.
 */
export const createDaemon = async (
  config: Config,
  process: DaemonTerms,
): Promise<RunnableDaemon> => {
  const { log, replica } = process;
  const types = instanceTypes(
    config.instanceTypes.provider === 'none'
      ? undefined
      : readInstanceTypes(config.instanceTypes.file),
  );
  const measuring = openMetrics(config, log, process.metricsGiven ?? false);
  const { metrics } = measuring;
  const tls = openTls(config.tls, log);
  const opened = await openedAssembly(config, { ...process, types, metrics }, tls?.identity);
  const parts = { ...opened, driver: measuredDriver(opened.driver, metrics) };
  const { clock, driver, coordination, history, records } = parts;
  const audit = openAudit(config, { ...process, parts });
  const apiKeys = new ApiKeyMirror({ apiKeys: records.apiKeys, clock, revocations: coordination });
  const quotaLimits = new QuotaLimits({
    quotas: records.quotas,
    clock,
    defaults: quotaDefaults(config.quotas),
  });
  const templates = new TemplateCatalog({ templates: records.templates, clock });
  const events = new EventFeed({ clock, log, history, coordination });
  const supervisor = new Supervisor({
    driver,
    pools: records.pools,
    pullSecrets: parts.pullSecrets,
    isEnv: async (uid) =>
      envs.mirror.get(uid) !== undefined ||
      (await records.envs.list()).some((env) => env.uid === uid),
    history,
    coordination,
    clock,
    log,
    events,
    metrics,
    policy: policyOf(config, parts),
    newId: () => idAt(clock.now()),
    replica,
    participant: {
      onShardAcquired: (shard) => {
        renewal.lead(shard);
        envs.onShardAcquired(shard);
      },
      onShardReleased: (shard) => {
        envs.onShardReleased(shard);
      },
      claimed: (poolUid, last) => {
        envs.claimed(poolUid, last);
      },
      startFailed: (poolUid) => {
        envs.startFailed(poolUid);
      },
      poolChanged: (record) => {
        envs.poolChanged(record);
      },
      caughtUp: async () => {
        await Promise.all([envs.caughtUp(), records.templates.caughtUp()]);
      },
    },
  });
  const rendering = {
    templates,
    types,
    volumes: parts.volumes,
    driver,
    terms: sourceTerms(config),
  };
  const renewal = new PoolRenewal({
    supervisor,
    clock,
    log,
    coordination,
    quotaLimits,
    ...rendering,
  });
  const envs: EnvParts = openEnvs(new EnvMirror({ envs: records.envs, clock, log }), {
    parts,
    log,
    metrics,
    supervisor,
    quotaLimits,
    ...rendering,
    clusterId: config.clusterId,
    newUid: () => idAt(clock.now()),
  });
  const life = { started: false, stopping: false };
  const tracer = await openTracing(config, { log, clock, replica });
  const operations = operationsOf(config, log, {
    parts,
    tls,
    audit,
    life,
    replica,
    apiKeys,
    quotaLimits,
    templates,
    types,
    supervisor,
    events,
    envs,
    metrics,
  });
  registerGauges(metrics, {
    supervisor,
    envs,
    readiness: operations.readiness,
    audit,
    apiKeys,
    tls,
    clock,
  });
  const terminals = terminalUpgrades({
    operations,
    log,
    clock,
    audit,
    clusterId: config.clusterId,
    allowedOrigins: config.terminal.allowedOrigins,
    frames: framesOf(config.terminal),
  });
  const clients = clientsOf({
    operations,
    clock,
    limits: coordination,
    log,
    trustedProxies: config.trustedProxies,
  });
  const gateway = createGateway({
    operations,
    clients,
    log,
    clock,
    metrics,
    audit,
    clusterId: config.clusterId,
  });
  const upgrade: typeof terminals.upgrade = (request, socket, head) =>
    (gateway.takes(request) ? gateway : terminals).upgrade(request, socket, head);
  const http = createHttpServer({
    operations,
    log,
    clock,
    metrics,
    tracer,
    traceScope: parts.traceScope,
    audit,
    requests: coordination,
    gateway,
    upgrade,
    clusterId: config.clusterId,
    sunset: httpDate(config.deprecation.sunset),
    tls: tls?.identity,
    clients,
    answers: answerBudget(config, metrics),
    keyRates: new KeyRates(config.keys.requestsPerSecond),
    limits: {
      maxConnections: config.connections.most,
      maxConnectionsPerAddress: config.connections.mostPerAddress,
    },
  });

  const control = new ControlServer({ dataDir: config.dataDir, backup: parts.backup, log, audit });

  return {
    failed: parts.failed,
    start: async () => {
      const metricsAddress = await measuring.start();
      await parts.start();
      await audit?.start();
      await Promise.all([apiKeys.start(), quotaLimits.start()]);
      const firstStart = apiKeys.size === 0;
      await loadTemplates({
        source: parts.templates,
        templates: records.templates,
        clock,
        log,
        check: (definition) => driver.check(definition),
      });
      templates.follow(({ record }) => {
        renewal.template(record.name);
      });
      await templates.start();
      parts.onOutdated((why) => {
        if (why === undefined) {
          log.info({}, 'leads again: nothing of a later version is there any more');
          supervisor.standUp();
          return;
        }
        log.error({ why }, 'leads nothing while a later version is at work');
        supervisor.standDown();
      });
      parts.grantBy(grantPools({ supervisor, coordination, clock, quotaLimits }));
      await envs.mirror.start();
      await supervisor.start();
      await envs.start();
      await records.pools.watch(({ kind, record }) => {
        if (kind === 'put') renewal.consider(record.uid);
      });
      for (const { document } of templates.list(TEMPLATE_LIMIT))
        driver.expect(renderDefinition(document.spec));
      const { isolation, warnings } = driver.describe();
      for (const warning of warnings) log.warn({ isolation }, warning);
      if (firstStart && parts.makesDefaultPool)
        await makeDefaultEnv({ config, pools: supervisor.pools.index, operations });
      await parts.ensureFirstKeys(apiKeys);
      await control.start();
      const { host, port } = await http.start(config.listen);
      tls?.start(clock, (identity) => {
        http.renew(identity);
      });
      life.started = true;
      const protocol = config.tls.certFile === undefined ? 'http' : 'https';
      return {
        address: `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`,
        firstStart,
        ...(metricsAddress === undefined ? {} : { metricsAddress }),
      };
    },
    stop: async () => {
      life.stopping = true;
      tls?.stop();
      renewal.stop();
      envs.stop();
      http.leave();
      supervisor.idle.lines.stop();
      if (life.started)
        await new Promise<void>((resolve) => {
          clock.at(clock.now() + config.shutdownDelay, resolve);
        });
      const stopped = await stopAll({
        parts,
        supervisor,
        events,
        http,
        terminals,
        gateway,
        control,
        measuring,
        audit,
      });
      await tracer?.stop();
      return stopped;
    },
  };
};

interface Parts {
  readonly parts: Assembly;
  readonly tls: TlsFiles | undefined;
  readonly audit: AuditTrail | undefined;
  readonly life: { readonly stopping: boolean };
  readonly replica: string;
  readonly apiKeys: ApiKeyMirror;
  readonly quotaLimits: QuotaLimits;
  readonly templates: TemplateCatalog;
  readonly types: InstanceTypes;
  readonly supervisor: Supervisor;
  readonly events: EventFeed;
  readonly envs: EnvParts;
  readonly metrics: Metrics;
}

const operationsOf = (
  config: Config,
  log: LevelledLog,
  {
    parts,
    tls,
    audit,
    life,
    replica,
    apiKeys,
    quotaLimits,
    templates,
    types,
    supervisor,
    events,
    envs,
    metrics,
  }: Parts,
): Operations => {
  const { clock, driver, coordination, history, records, pepper } = parts;
  const keys = {
    apiKeys,
    quotaLimits,
    pepper,
    clock,
    coordination,
    namespaceOf: (team: string) => namespaceOf(config.namespacePattern, team),
    defaultLifetimeMs: config.keys.defaultLifetime,
    maxLifetimeMs: config.keys.maxLifetime,
    creation: config.keys.creation,
  };
  const pendingRequests = new PendingRequests();
  const claimEnv = new ClaimEnv(pepper);
  const common = { supervisor, driver, coordination, clock, quotaLimits, envs: envs.mirror };
  const rendering = {
    templates,
    types,
    volumes: parts.volumes,
    driver,
    terms: sourceTerms(config),
  };
  const syncing = { ...common, ...rendering };
  const background = (name: string, work: Promise<void>): void => {
    work.catch((error: unknown) => {
      log.error({ work: name, error }, 'background work failed');
    });
  };
  return {
    ...authentication(keys),
    createApiKey: createApiKey(keys),
    createApiKeyForTenant: createApiKeyForTenant(keys),
    listApiKeys: listApiKeys(keys),
    listAllApiKeys: listAllApiKeys(keys),
    deleteApiKey: deleteApiKey(keys),
    deleteApiKeyByName: deleteApiKeyByName(keys),
    deleteApiKeysOf: deleteApiKeysOf(keys),
    promoteApiKey: promoteApiKey(keys),
    followKey: (keyId, ended) => apiKeys.followEnd(keyId, ended),
    claimSandbox: claimSandbox({
      ...common,
      claimEnv,
      demand: envs.demand,
      metrics,
      pendingRequests,
      background,
    }),
    pendingClaim: (mark) => pendingRequests.settled(mark),
    getSandbox: getSandbox({ ...common, endpointMode: config.endpoints.mode }),
    listSandboxes: listSandboxes({ ...common, history, listWindowMs: config.history.listWindow }),
    deleteSandbox: deleteSandbox(common),
    setIdleTimeout: setIdleTimeout(common),
    setSandboxState: setSandboxState(common),
    execInSandbox: execInSandbox({ ...common, claimEnv }),
    ...processOperations({
      sandboxes: runningSandboxes({ supervisor, clock, claimEnv }),
      driver,
      clock,
      newId: v7,
    }),
    sandboxLogs: sandboxLogs({ ...common, history }),
    followSandboxLogs: followSandboxLogs({ ...common, history }),
    sandboxEvents: sandboxEvents({ ...common, history, events }),
    poolEvents: poolEvents({ ...common, events }),
    followEvents: followEvents({ events }),
    createExecToken: createExecToken({ ...common, apiKeys, clusterId: config.clusterId }),
    openTerminal: openTerminal({
      ...common,
      claimEnv,
      apiKeys,
      clusterId: config.clusterId,
      mostOfTenant: config.limits.terminalsOfTenant,
    }),
    isReady: isReady(common),
    openEndpoint: openEndpoint(common),
    createPool: createPool({
      ...common,
      ...rendering,
      pools: records.pools,
      newUid: () => idAt(common.clock.now()),
      pullSecrets: parts.pullSecrets,
      background,
    }),
    findPoolByKey: findPoolByKey(common),
    getPool: getPool(common),
    listPools: listPools(common),
    updatePool: updatePool({ ...common, ...rendering, pullSecrets: parts.pullSecrets }),
    syncPool: syncPool(syncing),
    previewPoolSync: previewPoolSync(syncing),
    deletePool: deletePool(common),
    ...envs.operations,
    getQuotas: getQuotas(keys),
    getQuotasOf: getQuotasOf(keys),
    setQuotasOf: setQuotasOf(keys),
    getTemplate: getTemplate(records),
    listTemplates: listTemplates({ catalog: templates }),
    createTemplate: createTemplate({ ...records, ...common }),
    updateTemplate: updateTemplate({ ...records, ...common }),
    deleteTemplate: deleteTemplate({ ...records, ...common }),
    ...catalogue({
      instanceTypes: types,
      volumes: parts.volumes,
      driver,
      clock,
      clusterId: config.clusterId,
    }),
    sandboxStatistics: sandboxStatistics({ supervisor, history }),
    listAudit: listAudit({ recent: audit && parts.recentAudit }),
    shards: listShards({ ...common, replica }),
    ...debug({
      ...common,
      replica,
      reflectors: () => parts.reflectors(),
      kinds: inspectedKinds({ parts, supervisor, envs }),
    }),
    ...logLevels({ log, clock, replica }),
    readiness: () =>
      readinessOf(
        parts,
        [audit?.problem, tls?.problem, hostNetworkWarning(supervisor)],
        life.stopping,
      ),
  };
};

interface Served extends Pick<Parts, 'parts' | 'supervisor' | 'events'> {
  readonly http: HttpServer;
  readonly terminals: TerminalUpgrades;
  readonly gateway: Gateway;
  readonly control: ControlServer;
  readonly measuring: MetricsParts;
  readonly audit: AuditTrail | undefined;
}

const stopAll = async ({
  parts,
  supervisor,
  events,
  http,
  terminals,
  gateway,
  control,
  measuring,
  audit,
}: Served) => {
  const sandboxesLeft = supervisor.actors.size;
  await Promise.all([terminals.stop(), http.stop(STOP_GRACE_MS), control.stop()]);
  gateway.stop();
  await supervisor.stop(STOP_GRACE_MS);
  await events.flush();
  await audit?.stop();
  await parts.stop();
  await measuring.stop();
  return { sandboxesLeft };
};

const framesOf = (terminal: Config['terminal']): FrameBudgetTerms => ({
  connection: { frames: terminal.framesPerSecond, bytes: terminal.bytesPerSecond },
  tenant: { frames: terminal.tenantFramesPerSecond, bytes: terminal.tenantBytesPerSecond },
});

const answerBudget = (
  { answers: { memoryPercent, tenantPercent } }: Config,
  metrics: Metrics,
): AnswerBudget =>
  new AnswerBudget({
    mostBytes: Math.floor((getHeapStatistics().heap_size_limit * memoryPercent) / 100),
    tenantPercent,
    metrics,
  });

/** Throws where a file can't be read. */
const openTls = ({ certFile, keyFile }: Config['tls'], log: LevelledLog): TlsFiles | undefined =>
  certFile === undefined || keyFile === undefined
    ? undefined
    : new TlsFiles({ certFile, keyFile, log });

const httpDate = (timestamp: string | undefined): string | undefined =>
  timestamp === undefined ? undefined : new Date(timestamp).toUTCString();

const STOP_GRACE_MS = 3_000;
/** The most templates whose images are made ready at the start. */
const TEMPLATE_LIMIT = 256;

const ASSEMBLIES: Readonly<
  Record<Config['assembly'], (config: Config, terms: AssemblyTerms) => Promise<Assembly>>
> = {
  embedded: openEmbedded,
  kubernetes: openKubernetes,
};

/**
 * Answers under the daemon's own address why it is not ready, for as long as the assembly waits.
 */
const openedAssembly = async (
  config: Config,
  terms: Omit<AssemblyTerms, 'waits'>,
  tls: TlsIdentity | undefined,
): Promise<Assembly> => {
  const { log } = terms;
  const waiting = new WaitingServer({
    listen: config.listen,
    tls,
    said: (outcome) => {
      log.info(outcome, 'says that it waits');
    },
  });
  try {
    return await ASSEMBLIES[config.assembly](config, {
      ...terms,
      waits: (problem) => {
        waiting.say(problem);
      },
    });
  } finally {
    await waiting.stop();
  }
};

/**
 * Says whether the daemon is ready. Where only what replicas share is away that is a warning: reads
 * and deletions go on, and nobody would be sent here otherwise.
 */
const readinessOf = (
  { driver, coordination, problems: problemsOf, warnings: warningsOf }: Assembly,
  problemsBeside: readonly (string | undefined)[],
  stopping: boolean,
): Readiness => {
  const { isolation, problems, warnings } = driver.describe();
  const shared = coordination.describe();
  const all = [
    ...(stopping ? ['the daemon is about to stop'] : []),
    ...problems.map((problem) => `sandboxes: ${problem}`),
    ...problemsOf(),
  ];
  const beside = problemsBeside.filter((problem) => problem !== undefined);
  return {
    ready: all.length === 0,
    problems: all,
    warnings: [
      ...warnings,
      ...warningsOf(),
      ...beside,
      ...shared.problems.map((problem) => `${problem}: what is new is refused until then`),
      ...shared.warnings,
    ],
    isolation,
  };
};

/** Makes an id whose time is the assembly's clock's, whatever the machine's says. */
const idAt = (now: number): string => v7({ msecs: Math.floor(now) });

import { readFileSync } from 'node:fs';
import { v7 } from 'uuid';
import { EventFeed } from './actors/event-feed.ts';
import { Supervisor } from './actors/supervisor.ts';
import type { Assembly } from './assembly.ts';
import type { Config } from './config.ts';
import type { Log } from './contracts/log.ts';
import { ControlServer } from './control/control-server.ts';
import { policyOf } from './daemon-policy.ts';
import type { RunnableDaemon } from './daemon-process.ts';
import { openEmbedded } from './embedded-assembly.ts';
import { clientsOf } from './http/clients.ts';
import { createGateway, type Gateway } from './http/gateway.ts';
import { createHttpServer, type HttpServer } from './http/http-server.ts';
import type { TlsIdentity } from './http/listener.ts';
import { terminalUpgrades, type TerminalUpgrades } from './http/terminal.ts';
import { openKubernetes } from './kubernetes-assembly.ts';
import { renderDefinition } from './model/render-definition.ts';
import type { Caller } from './model/tenant.ts';
import { namespaceOf } from './namespaces.ts';
import { ApiKeyMirror } from './operations/api-keys.ts';
import { authentication } from './operations/authenticate.ts';
import { claimedUnder, claimSandbox } from './operations/claim-sandbox.ts';
import { createApiKey, createApiKeyForTenant } from './operations/create-api-key.ts';
import { createdPoolUnder, createPool } from './operations/create-pool.ts';
import { deleteSandbox } from './operations/delete-sandbox.ts';
import { execInSandbox } from './operations/exec-in-sandbox.ts';
import { followEvents } from './operations/follow-events.ts';
import { getSandbox } from './operations/get-sandbox.ts';
import { isReady } from './operations/is-ready.ts';
import { deleteApiKey, deleteApiKeyByName, listAllApiKeys, listApiKeys } from './operations/list-api-keys.ts';
import { listSandboxes } from './operations/list-sandboxes.ts';
import { listShards } from './operations/list-shards.ts';
import { loadTemplates } from './operations/load-templates.ts';
import { openEndpoint } from './operations/open-endpoint.ts';
import type { Operations, Readiness } from './operations/operations.ts';
import { deletePool, getPool, listPools, updatePool } from './operations/pools.ts';
import { sandboxEvents } from './operations/sandbox-events.ts';
import { followSandboxLogs, sandboxLogs } from './operations/sandbox-logs.ts';
import { setIdleTimeout } from './operations/set-idle-timeout.ts';
import { TemplateCatalog } from './operations/template-catalog.ts';
import { createExecToken, openTerminal } from './operations/terminals.ts';
import { UnsettledRequests } from './operations/unsettled-requests.ts';

/**
 * The composition root: which parts make a daemon is chosen here and nowhere else. `start` resolves once requests are
 * answered; `stop` takes no more, drains what is under way and leaves the sandboxes running.
 */
export const createDaemon = async (config: Config, process: { readonly log: Log; readonly replica: string }): Promise<RunnableDaemon> => {
  const { log, replica } = process;
  const parts = await ASSEMBLIES[config.assembly](config, process);
  const { clock, driver, coordination, history, records } = parts;
  const apiKeys = new ApiKeyMirror({ apiKeys: records.apiKeys, clock });
  const templates = new TemplateCatalog();
  const events = new EventFeed({ clock, log, history, coordination });
  const supervisor = new Supervisor({ driver, pools: records.pools, history, coordination, clock, log, events, policy: policyOf(config), newId: () => idAt(clock.now()), replica });
  const life = { started: false, stopping: false };
  const operations = operationsOf(config, log, { parts, life, replica, apiKeys, templates, supervisor, events });
  const terminals = terminalUpgrades({ operations, log, clock, clusterId: config.clusterId, allowedOrigins: config.terminal.allowedOrigins });
  const clients = clientsOf({ operations, clock, limits: coordination, log, trustedProxies: config.trustedProxies });
  const gateway = createGateway({ operations, clients, log, clock, clusterId: config.clusterId });
  const upgrade: typeof terminals.upgrade = (request, socket, head) => (gateway.takes(request) ? gateway : terminals).upgrade(request, socket, head);
  const http = createHttpServer({
    operations, log, clock, requests: coordination, gateway, upgrade,
    clusterId: config.clusterId, sunset: httpDate(config.deprecation.sunset),
    tls: readTls(config.tls), clients,
    limits: { maxConnections: config.connections.most, maxConnectionsPerAddress: config.connections.mostPerAddress },
  });

  const control = new ControlServer({ dataDir: config.dataDir, backup: parts.backup, log });

  return {
    failed: parts.failed,
    start: async () => {
      await parts.start();
      await apiKeys.start();
      const firstStart = apiKeys.size === 0;
      await loadTemplates({ source: parts.templates, templates: records.templates, clock, check: (definition) => driver.check(definition) });
      await records.templates.watch((change) => { templates.learn(change); });
      parts.onOutdated((why) => {
        log.error({ why }, 'leads nothing any more: a later version is at work');
        supervisor.standDown();
      });
      await supervisor.start();
      for (const { document } of templates.list(TEMPLATE_LIMIT)) driver.expect(renderDefinition(document));
      const { isolation, warnings } = driver.describe();
      for (const warning of warnings) log.warn({ isolation }, warning);
      if (firstStart && parts.makesDefaultPool) await makeDefaultPool(config, supervisor, operations);
      await parts.ensureFirstKeys(apiKeys);
      await control.start();
      const { host, port } = await http.start(config.listen);
      life.started = true;
      return { address: `${config.tls.certFile === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`, firstStart };
    },
    stop: async () => {
      life.stopping = true;
      http.leave();
      if (life.started) await new Promise<void>((resolve) => { clock.at(clock.now() + config.shutdownDelay, resolve); });
      return await stopAll({ parts, supervisor, events, http, terminals, gateway, control });
    },
  };
};

interface Parts {
  readonly parts: Assembly;
  readonly life: { readonly stopping: boolean };
  readonly replica: string;
  readonly apiKeys: ApiKeyMirror;
  readonly templates: TemplateCatalog;
  readonly supervisor: Supervisor;
  readonly events: EventFeed;
}

const operationsOf = (config: Config, log: Log, { parts, life, replica, apiKeys, templates, supervisor, events }: Parts): Operations => {
  const { clock, driver, coordination, history, records, pepper } = parts;
  const keys = {
    apiKeys, pepper, clock, coordination,
    namespaceOf: (team: string) => namespaceOf(config.namespacePattern, team),
    defaultLifetimeMs: config.keys.defaultLifetime,
    maxLifetimeMs: config.keys.maxLifetime,
  };
  const unsettled = new UnsettledRequests();
  const common = { supervisor, driver, coordination, clock };
  const background = (name: string, work: Promise<void>): void => {
    work.catch((error: unknown) => { log.error({ work: name, error }, 'background work failed'); });
  };
  return {
    ...authentication(keys),
    createApiKey: createApiKey(keys),
    createApiKeyForTenant: createApiKeyForTenant(keys),
    listApiKeys: listApiKeys(keys),
    listAllApiKeys: listAllApiKeys(keys),
    deleteApiKey: deleteApiKey(keys),
    deleteApiKeyByName: deleteApiKeyByName(keys),
    claimSandbox: claimSandbox({ ...common, sandboxLimit: config.quotas.sandboxes, unsettled, background }),
    claimedUnder: claimedUnder({ ...common, unsettled }),
    unsettledClaim: (mark) => unsettled.settled(mark),
    getSandbox: getSandbox({ ...common, endpointMode: config.endpoints.mode }),
    listSandboxes: listSandboxes({ ...common, history, listWindowMs: config.history.listWindow }),
    deleteSandbox: deleteSandbox(common),
    setIdleTimeout: setIdleTimeout(common),
    execInSandbox: execInSandbox(common),
    sandboxLogs: sandboxLogs({ ...common, history }),
    followSandboxLogs: followSandboxLogs({ ...common, history }),
    sandboxEvents: sandboxEvents({ ...common, history, events }),
    followEvents: followEvents({ events }),
    createExecToken: createExecToken({ ...common, clusterId: config.clusterId }),
    openTerminal: openTerminal({ ...common, clusterId: config.clusterId }),
    isReady: isReady(common),
    openEndpoint: openEndpoint(common),
    createPool: createPool({ ...common, pools: records.pools, templates, newUid: () => idAt(common.clock.now()), limits: config.quotas }),
    createdPoolUnder: createdPoolUnder(common),
    getPool: getPool(common),
    listPools: listPools(common),
    updatePool: updatePool({ ...common, replicaLimit: config.quotas.replicas }),
    deletePool: deletePool(common),
    shards: listShards({ ...common, replica }),
    readiness: () => readinessOf(parts, life.stopping),
  };
};

interface Served extends Pick<Parts, 'parts' | 'supervisor' | 'events'> {
  readonly http: HttpServer;
  readonly terminals: TerminalUpgrades;
  readonly gateway: Gateway;
  readonly control: ControlServer;
}

const stopAll = async ({ parts, supervisor, events, http, terminals, gateway, control }: Served) => {
  const sandboxesLeft = supervisor.size;
  await Promise.all([terminals.stop(), http.stop(STOP_GRACE_MS), control.stop()]);
  gateway.stop();
  await supervisor.stop(STOP_GRACE_MS);
  await events.flush();
  await parts.stop();
  return { sandboxesLeft };
};

/** Throws where a file can't be read. */
const readTls = ({ certFile, keyFile }: Config['tls']): TlsIdentity | undefined =>
  (certFile === undefined || keyFile === undefined ? undefined : { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') });

const httpDate = (timestamp: string | undefined): string | undefined => (timestamp === undefined ? undefined : new Date(timestamp).toUTCString());

const STOP_GRACE_MS = 3_000;
/** Whose images are made ready at the start. */
const TEMPLATE_LIMIT = 256;

const ASSEMBLIES: Readonly<Record<Config['assembly'], (config: Config, process: { readonly log: Log; readonly replica: string }) => Promise<Assembly>>> = {
  embedded: openEmbedded,
  kubernetes: openKubernetes,
};

/** Where only what is shared is away, reads and deletions go on: a warning, or nobody would be sent here any more. */
const readinessOf = ({ driver, coordination, problems: problemsOf }: Assembly, stopping: boolean): Readiness => {
  const { isolation, problems, warnings } = driver.describe();
  const shared = coordination.describe();
  const all = [...(stopping ? ['the daemon is about to stop'] : []), ...problems.map((problem) => `sandboxes: ${problem}`), ...problemsOf()];
  return { ready: all.length === 0, problems: all, warnings: [...warnings, ...shared.problems.map((problem) => `${problem}: what is new is refused until then`), ...shared.warnings], isolation };
};

/** The pool that the first start makes; one that an earlier, interrupted first start made already is left as it is. */
const makeDefaultPool = async (config: Config, supervisor: Supervisor, operations: Operations): Promise<void> => {
  const { name, replicas, template } = config.defaultPool;
  const caller: Caller = { namespace: namespaceOf(config.namespacePattern, 'default'), team: 'default', user: 'default', role: 'user', keyId: 'first-start' };
  if (supervisor.pools.index.uidOf(caller.namespace, name) !== undefined) return;
  await operations.createPool(caller, { name, replicas, templateName: template, labels: {}, annotations: {} });
};

/** What an id tells of its time is the assembly's clock's, whatever the machine's says. */
const idAt = (now: number): string => v7({ msecs: Math.floor(now) });

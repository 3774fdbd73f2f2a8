import { readFileSync } from 'node:fs';
import { v7 } from 'uuid';
import { EventFeed } from './actors/event-feed.ts';
import { Supervisor } from './actors/supervisor.ts';
import type { Config } from './config.ts';
import type { Log } from './contracts/log.ts';
import { ControlServer } from './control/control-server.ts';
import { policyOf } from './daemon-policy.ts';
import type { RunnableDaemon } from './daemon-process.ts';
import { openEmbedded, type Assembly } from './embedded-assembly.ts';
import { ensureFirstKeys, readOrMakePepper } from './first-start.ts';
import { clientsOf } from './http/clients.ts';
import { createGateway, type Gateway } from './http/gateway.ts';
import { createHttpServer, type HttpServer } from './http/http-server.ts';
import type { TlsIdentity } from './http/listener.ts';
import { terminalUpgrades, type TerminalUpgrades } from './http/terminal.ts';
import { renderDefinition } from './model/render-definition.ts';
import type { Caller, Tenant } from './model/tenant.ts';
import { ApiKeyMirror } from './operations/api-keys.ts';
import { authenticate } from './operations/authenticate.ts';
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
import { loadTemplates } from './operations/load-templates.ts';
import { openEndpoint } from './operations/open-endpoint.ts';
import type { Operations } from './operations/operations.ts';
import { deletePool, getPool, listPools, updatePool } from './operations/pools.ts';
import { sandboxEvents } from './operations/sandbox-events.ts';
import { followSandboxLogs, sandboxLogs } from './operations/sandbox-logs.ts';
import { setIdleTimeout } from './operations/set-idle-timeout.ts';
import { TemplateCatalog } from './operations/template-catalog.ts';
import { createExecToken, openTerminal } from './operations/terminals.ts';

/**
 * The composition root: which parts make a daemon is chosen here and nowhere else. `start` resolves once requests are
 * answered; `stop` takes no more, drains what is under way and leaves the sandboxes running.
 */
export const createDaemon = async (config: Config, log: Log): Promise<RunnableDaemon> => {
  const parts = await openEmbedded(config, log);
  const { clock, driver, coordination, history, records } = parts;
  const pepper = readOrMakePepper(config.dataDir);
  const apiKeys = new ApiKeyMirror({ apiKeys: records.apiKeys, clock });
  const templates = new TemplateCatalog();
  const events = new EventFeed({ clock, log, history });
  const supervisor = new Supervisor({ driver, pools: records.pools, history, coordination, clock, log, events, policy: policyOf(config), newId: () => v7() });
  const operations = operationsOf(config, log, { parts, pepper, apiKeys, templates, supervisor, events });
  const terminals = terminalUpgrades({ operations, log, clock, clusterId: config.clusterId, allowedOrigins: config.terminal.allowedOrigins });
  const clients = clientsOf({ operations, clock, log, trustedProxies: config.trustedProxies });
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
      await apiKeys.start();
      const firstStart = apiKeys.size === 0;
      templates.fill(await loadTemplates({ source: parts.templates, templates: records.templates, clock, check: (definition) => driver.check(definition) }));
      await parts.start();
      await supervisor.start();
      for (const { document } of templates.list(TEMPLATE_LIMIT)) driver.expect(renderDefinition(document));
      const { isolation, warnings } = driver.describe();
      for (const warning of warnings) log.warn({ isolation }, warning);
      if (firstStart) await makeDefaultPool(config, supervisor, operations);
      const tenant = defaultTenant(config);
      await ensureFirstKeys({ dataDir: config.dataDir, apiKeys, pepper, now: clock.now(), lifetimeMs: config.keys.defaultLifetime, tenant });
      await control.start();
      const { host, port } = await http.start(config.listen);
      return { address: `${config.tls.certFile === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`, firstStart };
    },
    stop: () => stopAll({ parts, supervisor, events, http, terminals, gateway, control }),
  };
};

interface Parts {
  readonly parts: Assembly;
  readonly pepper: Buffer;
  readonly apiKeys: ApiKeyMirror;
  readonly templates: TemplateCatalog;
  readonly supervisor: Supervisor;
  readonly events: EventFeed;
}

const operationsOf = (config: Config, log: Log, { parts, pepper, apiKeys, templates, supervisor, events }: Parts): Operations => {
  const { clock, driver, coordination, history, records } = parts;
  const keys = {
    apiKeys, pepper, clock,
    namespaceOf: (team: string) => namespaceOf(config, team),
    defaultLifetimeMs: config.keys.defaultLifetime,
    maxLifetimeMs: config.keys.maxLifetime,
  };
  const unsettled = new Set<string>();
  const common = { supervisor, driver, coordination, clock };
  const background = (name: string, work: Promise<void>): void => {
    work.catch((error: unknown) => { log.error({ work: name, error }, 'background work failed'); });
  };
  return {
    authenticate: authenticate(keys),
    createApiKey: createApiKey(keys),
    createApiKeyForTenant: createApiKeyForTenant(keys),
    listApiKeys: listApiKeys(keys),
    listAllApiKeys: listAllApiKeys(keys),
    deleteApiKey: deleteApiKey(keys),
    deleteApiKeyByName: deleteApiKeyByName(keys),
    claimSandbox: claimSandbox({ ...common, sandboxLimit: config.quotas.sandboxes, unsettled, background }),
    claimedUnder: claimedUnder({ ...common, unsettled }),
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
    createPool: createPool({ ...common, pools: records.pools, templates, newUid: () => v7(), limits: config.quotas }),
    createdPoolUnder: createdPoolUnder(common),
    getPool: getPool(common),
    listPools: listPools(common),
    updatePool: updatePool({ ...common, replicaLimit: config.quotas.replicas }),
    deletePool: deletePool(common),
    readiness: () => {
      const { ready, warnings, isolation } = driver.describe();
      return { ready, problems: ready ? [] : ['sandboxes: the spawner is away'], warnings, isolation };
    },
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
const namespaceOf = (config: Config, team: string): string => config.namespacePattern.replaceAll('{team}', team);

const defaultTenant = (config: Config): Tenant => ({ namespace: namespaceOf(config, 'default'), team: 'default', user: 'default' });

/** The pool that the first start makes; one that an earlier, interrupted first start made already is left as it is. */
const makeDefaultPool = async (config: Config, supervisor: Supervisor, operations: Operations): Promise<void> => {
  const { name, replicas, template } = config.defaultPool;
  const caller: Caller = { ...defaultTenant(config), role: 'user', keyId: 'first-start' };
  if (supervisor.pools.index.uidOf(caller.namespace, name) !== undefined) return;
  await operations.createPool(caller, { name, replicas, templateName: template, labels: {}, annotations: {} });
};

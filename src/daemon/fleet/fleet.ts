import type { Duplex } from 'node:stream';
import type { Config } from '../config/config.ts';
import type { AuditSink } from '../../contracts/audit.ts';
import type { EnvCopies } from '../../contracts/fleet/env-copies.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { ControlCommands } from '../control/control-server.ts';
import { ClusterClient } from '../../fleet/link/cluster-client.ts';
import { ClusterRegistry } from '../../fleet/link/cluster-registry.ts';
import { envCopies } from '../../fleet/link/env-copies.ts';
import { newNonce } from '../../fleet/link/fleet-keys.ts';
import { ManagerLinks } from '../../fleet/link/manager-links.ts';
import { fleetGateway, type FleetGatewayDeps } from '../../fleet/routing/fleet-gateway.ts';
import type { FleetDeps } from '../../fleet/routing/fleet-router.ts';
import { Passing } from '../../fleet/routing/pass-on.ts';
import type { Gateway } from '../../http/gateway/gateway.ts';
import { clientAddresses } from '../../http/limits/client-address.ts';
import type { Clients } from '../../http/limits/clients.ts';
import { fleetOperations, type FleetOperations } from '../../fleet/replication/fleet-operations.ts';
import { GlobalTemplates } from '../../fleet/replication/global-templates.ts';
import type { LinkedCallers } from '../../fleet/routing/linked-clients.ts';
import { ManagerAccess, managers } from '../../fleet/replication/manager-access.ts';
import type { ManagersOperations } from '../../services/fleet-views.ts';
import { PromotedCopies } from '../../fleet/replication/promoted-copies.ts';
import { PromotedKeys } from '../../fleet/replication/promoted-keys.ts';
import type { TemplateClustersDeps } from '../../fleet/replication/template-clusters.ts';
import { TemplateCopies } from '../../fleet/replication/template-copies.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';
import type { Promotions } from '../../services/keys/promote-api-key.ts';
import type { PromotedTrust } from '../../services/keys/promoted-trust.ts';
import type { Globals } from '../../services/templates/change-templates.ts';
import type { TemplateCatalog } from '../../actors/pool/template-catalog.ts';
import type { Assembly } from '../assembly/assembly.ts';
import { clusterCommands } from '../commands/cluster-commands.ts';
import { namespaceOf } from '../assembly/namespaces.ts';
import { ownManagerKey, sharedClusterKey } from './cluster-key.ts';
import { tellOfClusters } from './fleet-metrics.ts';
import { openWorker, type WorkerParts } from './worker.ts';

interface Given {
  readonly parts: Pick<Assembly, 'clock' | 'records' | 'coordination' | 'pepper' | 'driver'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly replica: string;
  readonly apiKeys: ApiKeyMirror;
  readonly templates: TemplateCatalog;
  readonly trust: PromotedTrust;
  readonly audit: AuditSink | undefined;
}

export interface FleetParts {
  readonly copies: EnvCopies | undefined;
  readonly operations: FleetOperationParts;
  readonly clients: (clients: Clients) => Clients;
  /** Lets the HTTP servers forward requests; undefined without other clusters. */
  readonly manager: FleetDeps | undefined;
  readonly gateway: (own: OwnWays) => Gateway;
  readonly commands: ControlCommands;
  readonly know: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** Call when requests are answered. */
  readonly link: (accept: (connection: Duplex) => void) => void;
  readonly ending: FleetEnding;
}

/** Call the steps in this order. */
export interface FleetEnding {
  /** Requests in progress continue. */
  readonly leave: () => void;
  readonly drained: (withinMs: number) => Promise<void>;
  readonly stop: () => void;
}

interface OwnWays extends Pick<FleetGatewayDeps, 'gateway' | 'clients' | 'clock' | 'gate'> {
  readonly terminals: Pick<Gateway, 'upgrade'>;
}

export interface FleetOperationParts {
  readonly callers: LinkedCallers | undefined;
  readonly listShown: FleetOperations['listShown'] | undefined;
  readonly promotions: Promotions | undefined;
  readonly warning: () => string | undefined;
  readonly globals: Globals | undefined;
  readonly managers: ManagersOperations;
  readonly templateLinks: TemplateClustersDeps['links'];
}

export const openFleet = (config: Config, given: Given): FleetParts => {
  const manager = openManager(config, given);
  const { parts, ...rest } = given;
  const addresses = config.fleet.managers;
  const origins = new Set(addresses.map((url) => new URL(url).origin)).size;
  const copies = new PromotedCopies({
    ...{ ...parts, ...rest, managers: origins },
    aloneMs: config.fleet.promotedKeysAlone,
    namespaceOf: (team) => namespaceOf(config.namespacePattern, team),
  });
  const { clock, driver, records } = parts;
  const templateCopies = new TemplateCopies({
    ...{ clock, driver, log: given.log, catalog: given.templates, managers: origins },
    templates: records.templates,
    pools: records.pools,
  });
  const access = new ManagerAccess({
    ...{ clock, clusterId: config.clusterId, clusters: records.clusters },
  });
  const worker = openWorker(config, { ...given, copies, templateCopies, access });
  return {
    operations: {
      callers: worker?.callers,
      listShown: manager?.http.fleet.listShown,
      promotions: manager?.promotions,
      warning: () => manager?.promotions.warning() ?? copies.warning,
      globals: manager?.globals,
      managers: managers({
        ...{ addresses, access, apiKeys: given.apiKeys },
        links: () => worker?.links() ?? 0,
        isLinked: (caller) => worker?.callers.came(caller) ?? false,
      }),
      templateLinks: manager?.links,
    },
    copies: manager?.copies,
    clients: (clients) => worker?.clients(clients) ?? clients,
    manager: manager?.http,
    gateway: (answering) => gatewayOf(answering, manager, given),
    commands: manager ? clusterCommands(manager, given.audit) : {},
    know: async () => {
      await manager?.registry.start();
      if (worker) await access.start();
    },
    start: async () => {
      manager?.start();
      await templateCopies.start();
      await copies.start();
      worker?.follow();
    },
    link: (accept) => worker?.start(accept),
    ending: endingOf({ manager, worker, copies, templateCopies }),
  };
};

const gatewayOf = (
  { gateway, terminals, ...rest }: OwnWays,
  manager: ManagerParts | undefined,
  { log, apiKeys }: Given,
): Gateway => {
  const upgrade: Gateway['upgrade'] = (request, socket, head) =>
    (gateway.takes(request) ? gateway : terminals).upgrade(request, socket, head);
  if (!manager) return { ...gateway, upgrade };
  const { http, links } = manager;
  const passed = fleetGateway({
    ...{ ...rest, gateway, upgrade, log, ...http },
    keyOwner: (keyId) => apiKeys.find(keyId),
  });
  return {
    ...passed,
    upgrade: (request, socket, head) => {
      (links.takes(request) ? links : passed).upgrade(request, socket, head);
    },
  };
};

const endingOf = ({
  manager,
  worker,
  copies,
  templateCopies,
}: {
  readonly manager: ManagerParts | undefined;
  readonly worker: WorkerParts | undefined;
  readonly copies: PromotedCopies;
  readonly templateCopies: TemplateCopies;
}): FleetEnding => ({
  leave: () => {
    worker?.leave();
    manager?.links.leave();
  },
  drained: async (withinMs) => await worker?.drained(withinMs),
  stop: () => {
    worker?.stop();
    templateCopies.stop();
    copies.stop();
    manager?.http.passing.stop();
    manager?.client.stop();
    manager?.links.stop();
  },
});

interface ManagerParts {
  readonly http: FleetDeps;
  readonly links: ManagerLinks;
  readonly registry: ClusterRegistry;
  readonly promotions: Promotions & { readonly warning: () => string | undefined };
  readonly globals: Globals;
  readonly start: () => void;
  readonly client: ClusterClient;
  readonly copies: EnvCopies;
}

const openManager = (
  config: Config,
  {
    parts: { clock, records, coordination, pepper },
    log,
    metrics,
    apiKeys,
    templates,
    replica,
  }: Given,
): ManagerParts | undefined => {
  const { role, clusterId, dataDir, fleet } = config;
  if (role !== 'manager') return undefined;
  const key = sharedClusterKey(config) ?? ownManagerKey(dataDir);
  const registry = new ClusterRegistry({
    clusters: records.clusters,
    clock,
    ownClusterId: clusterId,
    managerKey: key.publicKey,
  });
  const keys = new PromotedKeys({ apiKeys, pepper, clock, log });
  const globalTemplates = new GlobalTemplates({ catalog: templates, log });
  const links = new ManagerLinks({
    registry,
    key,
    clock,
    log,
    keys,
    templates: globalTemplates,
    replica,
    coordination,
    addresses: fleet.addresses,
    addressOf: clientAddresses(config.trustedProxies).of,
  });
  const client = new ClusterClient({ links, clock });
  const passing = new Passing(clock);
  tellOfClusters(metrics, { links, passed: passing.passed, clock });
  return {
    client,
    copies: envCopies({ links, client }),
    http: { fleet: fleetOperations(links, clusterId), passing },
    links,
    registry,
    promotions: {
      isLinked: () => links.list().some(({ isConnected }) => isConnected),
      promote: (record) => keys.promote(record),
      settled: () => links.keysSettled(),
      warning: () => keys.warning,
    },
    globals: globalsOf(globalTemplates, links),
    start: () => {
      keys.start();
      globalTemplates.start();
      links.start();
    },
  };
};

const globalsOf = (templates: GlobalTemplates, links: ManagerLinks): Globals => ({
  newId: newNonce,
  requireRoom: (record) => templates.requireRoom(record),
  settled: () => links.templatesSettled(),
  poolsOf: async (globalId) => {
    const pools = await Promise.all(
      links.list().map(async ({ clusterId }) => {
        const report = await links.report(clusterId, globalId);
        return (report?.pools ?? []).map(({ name, namespace }) => ({
          name: `${clusterId}::${name}`,
          namespace,
        }));
      }),
    );
    return pools.flat();
  },
});

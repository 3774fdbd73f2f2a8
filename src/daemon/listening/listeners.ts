import type { AuditTrail } from '../../services/audit/audit-trail.ts';
import type { Config } from '../config/config.ts';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import { createGateway, type Gateway } from '../../http/gateway/gateway.ts';
import { Admission } from '../../http/limits/admission.ts';
import { clientsOf, type Clients } from '../../http/limits/clients.ts';
import { KeyRates } from '../../http/limits/shares.ts';
import type { RequestWatchers } from '../../http/server/app.ts';
import { createHttpServer, type HttpServer } from '../../http/server/http-server.ts';
import { requireFree, type TlsIdentity } from '../../http/server/listener.ts';
import { terminalUpgrades } from '../../http/terminal/terminal.ts';
import type { Operations } from '../../services/operations.ts';
import type { ApprovalsOfDaemon } from '../assembly/approvals.ts';
import { openCompatibleApi } from './compatible-api.ts';
import { listenOrDoWithout } from './listen-or-do-without.ts';
import type { ConsoleParts } from '../assembly/console.ts';
import type { FleetParts } from '../fleet/fleet.ts';
import { managerStages } from '../../fleet/routing/manager-stages.ts';
import { answerBudget, framesOf, httpDate } from './http-terms.ts';

export interface ListenerParts {
  readonly operations: Operations;
  readonly clock: Clock;
  readonly watchers: Omit<RequestWatchers, 'audit'> & { readonly audit: AuditTrail | undefined };
  readonly approvals: ApprovalsOfDaemon;
  readonly people: ConsoleParts | undefined;
  readonly fleet: Pick<FleetParts, 'clients' | 'gateway' | 'manager'>;
  readonly tls: TlsIdentity | undefined;
  readonly compatibleGiven: boolean;
}

export interface Listeners extends Pick<HttpServer, 'accept' | 'leave' | 'renew' | 'stop'> {
  requireFree(): Promise<void>;
  start(): Promise<{
    readonly host: string;
    readonly port: number;
    readonly compatibleAddress: string | undefined;
  }>;
}

export const openListeners = (config: Config, parts: ListenerParts): Listeners => {
  const { operations, clock, watchers, approvals, people, fleet, tls, compatibleGiven } = parts;
  const { log, metrics, audit } = watchers;
  const { clusterId } = config;
  const { trustedProxies } = config;
  const hasConsole = config.console.mode !== 'off';
  const clients = fleet.clients(clientsOf({ operations, clock, log, trustedProxies, hasConsole }));
  const admission = new Admission({
    ...{ clients, metrics, log },
    answers: answerBudget(config, metrics),
    keyRates: new KeyRates(config.keys.requestsPerSecond),
    bounds: {
      maxConnections: config.connections.most,
      maxConnectionsPerAddress: config.connections.mostPerAddress,
    },
  });
  const served = { operations, clock, watchers, tls, clients, admission };
  const gating = approvals.gating(operations);
  const { gate } = approvals;
  const { terminals, gateway } = openWays(config, parts, { clients, admission });
  const compatibleApi = openCompatibleApi(config, {
    ...served,
    gating,
    gate,
    audit,
    given: compatibleGiven,
    fleet: fleet.manager,
  });
  const ways = firstOf(compatibleApi.overLinks, gateway);
  const http = createHttpServer({
    ...served,
    terms: {
      clusterId,
      sunset: httpDate(config.deprecation.sunset),
      manager: fleet.manager && managerStages(fleet.manager, operations),
    },
    gateway: ways,
    upgrade: ways.upgrade,
    people: { gating, console: people && { people: people.access, url: people.url } },
  });
  return {
    requireFree: () => requireAllFree(config, compatibleGiven),
    start: async () => {
      const bound = await http.start(config.listen);
      return { ...bound, compatibleAddress: await compatibleApi.start() };
    },
    accept: http.accept,
    renew: (identity) => {
      http.renew(identity);
      compatibleApi.renew(identity);
    },
    leave: () => {
      http.leave();
      compatibleApi.leave();
    },
    stop: async (graceMs) => {
      await Promise.all([terminals.stop(), http.stop(graceMs), compatibleApi.stop(graceMs)]);
      gateway.stop();
    },
  };
};

const openWays = (
  config: Config,
  { operations, clock, watchers, approvals, fleet }: ListenerParts,
  { clients, admission }: { readonly clients: Clients; readonly admission: Admission },
) => {
  const { log, metrics, audit } = watchers;
  const { clusterId } = config;
  const { gate } = approvals;
  const terminals = terminalUpgrades({
    operations,
    processes: { operations, clock, clients, admission, gate },
    log,
    clock,
    audit,
    clusterId,
    allowedOrigins: config.terminal.allowedOrigins,
    isLinked: clients.isLinked,
    frames: framesOf(config.terminal),
  });
  const gateway = fleet.gateway({
    gateway: createGateway({ operations, clients, log, clock, metrics, audit, gate, clusterId }),
    gate,
    terminals,
    clients,
    clock,
  });
  return { terminals, gateway };
};

const requireAllFree = async (config: Config, given: boolean): Promise<void> => {
  await requireFree(config.listen);
  const { listen } = config.compatibleApi;
  if (listen === 'none') return;
  const terms = { setting: 'compatibleApi.listen', given, taken: () => {} };
  await listenOrDoWithout({ ...listen, ...terms, listen: requireFree });
};

type Ways = Pick<Gateway, 'takes' | 'answer' | 'upgrade'>;

const firstOf = (first: Ways | undefined, other: Ways): Ways => {
  if (!first) return other;
  const wayOf = (request: IncomingMessage): Ways => (first.takes(request) ? first : other);
  return {
    takes: (request) => wayOf(request).takes(request),
    answer: (request, response, terms) => wayOf(request).answer(request, response, terms),
    upgrade: (request, socket, head) => wayOf(request).upgrade(request, socket, head),
  };
};

import { silentMetrics } from '../../src/contracts/metrics.ts';
import {
  createCompatibleApi,
  type CompatibleApiDeps,
  type CompatibleServer,
} from '../../src/http/e2b/compatible-api.ts';
import { compatibleFleet } from '../../src/fleet/e2b/compatible-fleet.ts';
import type { FleetDeps } from '../../src/fleet/routing/fleet-router.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import { Turns } from '../../src/http/limits/turns.ts';
import { anAdmission } from '../support/fakes/an-admission.ts';
import { anEngine, type Engine } from '../support/harness/engine-operations.ts';
import { dialHere } from '../support/fakes/channel-dial.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';

export interface CompatibleApi {
  readonly operations: Engine;
  readonly url: string;
  /** Keys of a tenant, and of one of another team. */
  readonly keys: { readonly tenant: string; readonly stranger: string };
  /** Of the control API and of what is for sandboxes. */
  readonly turns: Turns;
  readonly overLinks: CompatibleServer['overLinks'];
  readonly stop: () => Promise<void>;
}

/** The compatible API over an engine of its own, which has a pool `default` of four. */
export const aCompatibleApi = async ({
  terms,
  operations = anEngine(),
  trustedProxies = [],
  fleet,
  ...given
}: Partial<Omit<CompatibleApiDeps, 'terms' | 'operations'>> & {
  readonly operations?: Engine;
  /** From these X-Forwarded-For says who asks. */
  readonly trustedProxies?: readonly string[];
  readonly terms?: Partial<CompatibleApiDeps['terms']>;
  /** Makes it a manager. */
  readonly fleet?: FleetDeps;
} = {}): Promise<CompatibleApi> => {
  const keys = {
    tenant: await operations.key('blue', 'ada'),
    stranger: await operations.key('red', 'eve'),
  };
  operations.driver.dial = (_id, port, signal) => dialHere(port, signal);
  await operations.start();
  const { clock } = operations;
  const gate = given.gate ?? ({ rulesFor: () => [] } as unknown as CompatibleApiDeps['gate']);
  await operations.createPool(operations.authenticate(keys.tenant), {
    name: 'default',
    replicas: 4,
    labels: {},
    annotations: {},
    source: { templateName: 'default' },
  });
  await operations.settled();
  const turns = new Turns({ metrics: silentMetrics });
  const served = {
    clusterId: 'local',
    domain: undefined,
    templates: new Map([['base', 'default']]),
    waitMs: 0,
    images: [],
    openPorts: false,
    imageWaitMs: 0,
    withoutPause: 'refuse' as const,
    ...terms,
  };
  const clients = given.clients ?? clientsOf({ operations, clock, log: quietLog, trustedProxies });
  const ofFleet =
    fleet && compatibleFleet({ operations, gate, clients, clock, terms: served, fleet });
  const server = createCompatibleApi({
    operations,
    clock,
    watchers: { log: quietLog, metrics: silentMetrics },
    admission: anAdmission({ clients, turns }),
    gating: undefined,
    audit: undefined,
    tls: undefined,
    ...given,
    gate,
    clients,
    terms: { ...served, ...ofFleet },
  });
  const { port } = await server.start({ host: '127.0.0.1', port: 0 });
  return {
    operations,
    url: `http://127.0.0.1:${port}`,
    keys,
    turns,
    overLinks: server.overLinks,
    stop: () => server.stop(1_000),
  };
};

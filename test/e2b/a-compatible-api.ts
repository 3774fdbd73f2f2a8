import { silentMetrics } from '../../src/contracts/metrics.ts';
import {
  createCompatibleApi,
  type CompatibleApiDeps,
  type CompatibleServer,
} from '../../src/http/e2b/compatible-api.ts';
import { compatibleFleet } from '../../src/fleet/e2b/compatible-fleet.ts';
import type { FleetDeps } from '../../src/fleet/routing/fleet-router.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import { CostlyTurns } from '../../src/http/limits/costly-turns.ts';
import { KeyRates } from '../../src/http/limits/key-rates.ts';
import { LoopTurns } from '../../src/http/limits/loop-turns.ts';
import { AnswerBudget } from '../../src/actors/sandbox/commands/answer-budget.ts';
import { FakeOperations } from '../support/fakes/fake-operations.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';

export interface CompatibleApi {
  readonly operations: FakeOperations;
  readonly url: string;
  /** Keys of a tenant, and of one of another team. */
  readonly keys: { readonly tenant: string; readonly stranger: string };
  /** Of the control API and of what is for sandboxes. */
  readonly loopTurns: LoopTurns;
  readonly overLinks: CompatibleServer['overLinks'];
  readonly stop: () => Promise<void>;
}

/** The compatible API over operations in memory, which have a pool `default` of four. */
export const aCompatibleApi = async ({
  terms,
  operations = new FakeOperations(),
  trustedProxies = [],
  fleet,
  ...given
}: Partial<Omit<CompatibleApiDeps, 'terms' | 'operations'>> & {
  readonly operations?: FakeOperations;
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
  const { clock } = operations;
  const gate = given.gate ?? ({ rulesFor: () => [] } as unknown as CompatibleApiDeps['gate']);
  await operations.createPool(operations.authenticate(keys.tenant), {
    name: 'default',
    replicas: 4,
    labels: {},
    annotations: {},
    source: { templateName: 'default' },
  });
  const loopTurns = new LoopTurns({ metrics: silentMetrics });
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
    limits: {
      keyRates: new KeyRates(0),
      costly: new CostlyTurns({ metrics: silentMetrics }),
      loopTurns,
      answers: new AnswerBudget({
        metrics: silentMetrics,
        mostBytes: 64 * 1024 * 1024,
        tenantPercent: 50,
      }),
    },
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
    loopTurns,
    overLinks: server.overLinks,
    stop: () => server.stop(1_000),
  };
};

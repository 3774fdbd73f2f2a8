import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../src/contracts/clock.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import type { IdentityCheck } from '../../src/fleet/link/worker-link.ts';
import { linkedClients } from '../../src/fleet/routing/linked-clients.ts';
import { Passing } from '../../src/fleet/routing/pass-on.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import { fleetOperations } from '../../src/fleet/replication/fleet-operations.ts';
import { FleetUnderTest } from '../fleet/a-fleet.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';

export interface CompatibleFleet {
  /** The manager, `hub`, whose `base` is the pool `default` of the first worker. */
  readonly manager: CompatibleApi;
  readonly workers: Readonly<Record<string, CompatibleApi>>;
  /** What workers were asked over their links: method, path and headers, as they came. */
  readonly passed: readonly { readonly url: string; readonly headers: readonly string[] }[];
  readonly cut: (clusterId: string) => void;
  /** Links another worker, served as is said. */
  readonly join: FleetUnderTest['join'];
  readonly stop: () => Promise<void>;
}

interface WaitTerms {
  /** Of what the manager passes on. */
  readonly passingClock?: Clock;
  /** How long creations at workers wait where nobody says so. */
  readonly workerWaitMs?: number;
}

/** What a worker itself calls `base` is another pool than at the manager. */
const THEIRS = new Map([['base', 'theirs']]);
const JSON_TYPE = { 'content-type': 'application/json' };

/** The compatible API of a manager over those of workers, which are linked to it in earnest. */
export const aCompatibleFleet = async (
  clusterIds: readonly [string, ...string[]] = ['w1', 'w2'],
  given: Parameters<typeof aCompatibleApi>[0] = {},
  { passingClock = systemClock(), workerWaitMs = 0 }: WaitTerms = {},
): Promise<CompatibleFleet> => {
  const fleet = await FleetUnderTest.start();
  const workers: Record<string, CompatibleApi> = {};
  const passed: { url: string; headers: readonly string[] }[] = [];
  const stops: (() => Promise<void>)[] = [];
  const cuts = new Map<string, () => void>();
  for (const clusterId of clusterIds) {
    const checks = new WeakMap<Duplex, IdentityCheck>();
    const operations = anEngine();
    const clients = linkedClients({
      clients: clientsOf({ operations, clock: operations.clock, log: quietLog }),
      checkOf: (connection) => checks.get(connection),
      remember: () => undefined,
    });
    const api = await aCompatibleApi({
      operations,
      clients,
      terms: { clusterId, templates: THEIRS, waitMs: workerWaitMs },
    });
    workers[clusterId] = api;
    const { takes, answer, upgrade } = api.overLinks;
    const server = createServer((request, response) => {
      passed.push({ url: request.url ?? '', headers: [...request.rawHeaders] });
      if (takes(request)) void answer(request, response, { stopping: false });
      else response.writeHead(404, JSON_TYPE).end('{"error":"nothing","errorCode":"NOT_FOUND"}');
    }).on('upgrade', upgrade);
    stops.push(api.stop);
    const { links } = await fleet.join({
      clusterId,
      serve: (connection, check) => {
        checks.set(connection, check);
        server.emit('connection', connection);
      },
    });
    cuts.set(clusterId, () => links.stop());
  }
  const passing = new Passing(passingClock);
  const manager = await aCompatibleApi({
    ...given,
    terms: {
      ...given.terms,
      clusterId: 'hub',
      templates: new Map([['base', `${clusterIds[0]}::default`]]),
    },
    fleet: { fleet: fleetOperations(fleet.links, 'hub'), passing },
  });
  return {
    manager,
    workers,
    passed,
    join: (terms) => fleet.join(terms),
    cut: (clusterId) => cuts.get(clusterId)?.(),
    stop: async () => {
      passing.stop();
      await fleet.stop();
      await Promise.all([manager.stop(), ...stops.map((stop) => stop())]);
    },
  };
};

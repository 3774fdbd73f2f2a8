import type { Duplex } from 'node:stream';
import { fleetOperations } from '../../src/fleet/replication/fleet-operations.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import type { IdentityCheck } from '../../src/fleet/link/worker-link.ts';
import { linkedClients } from '../../src/fleet/routing/linked-clients.ts';
import { Passing } from '../../src/fleet/routing/pass-on.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { FleetUnderTest, type JoinTerms, type TestWorker } from '../fleet/a-fleet.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { aServer, type TestServer } from './a-server.ts';

export interface FleetOfServers {
  readonly manager: TestServer;
  readonly fleet: FleetUnderTest;
  readonly workers: Readonly<Record<string, TestServer>>;
  readonly passing: Passing;
  readonly cut: (clusterId: string) => void;
  /** Links a cluster that was cut; resolves once it is linked. */
  readonly mend: (clusterId: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export type ManagerTerms = Required<
  Pick<Parameters<typeof aServer>[0] & object, 'clusterId' | 'fleet'>
>;

export type WorkerTerms = Required<
  Pick<Parameters<typeof aServer>[0] & object, 'clusterId' | 'operations' | 'clients'>
>;

/** The HTTP server of a manager, `hub`, and those of workers, linked to it in earnest. */
export const aFleetOfServers = async (
  clusterIds: readonly string[] = ['w1', 'w2'],
  managerOf: (terms: ManagerTerms) => Promise<TestServer> = aServer,
  passingClock: Clock = systemClock(),
  workerOf: (terms: WorkerTerms) => Promise<TestServer> = aServer,
): Promise<FleetOfServers> => {
  const fleet = await FleetUnderTest.start();
  const workers: Record<string, TestServer> = {};
  const joined = new Map<string, TestWorker>();
  const serves = new Map<string, JoinTerms['serve']>();
  for (const clusterId of clusterIds) {
    const checks = new WeakMap<Duplex, IdentityCheck>();
    const operations = anEngine();
    const clients = linkedClients({
      clients: clientsOf({ operations, clock: operations.clock, log: quietLog }),
      checkOf: (connection) => checks.get(connection),
      remember: () => undefined,
    });
    const server = await workerOf({ clusterId, operations, clients });
    workers[clusterId] = server;
    const serve: JoinTerms['serve'] = (connection, check) => {
      checks.set(connection, check);
      server.accept(connection);
    };
    serves.set(clusterId, serve);
    joined.set(clusterId, await fleet.join({ clusterId, serve }));
  }
  const passing = new Passing(passingClock);
  const manager = await managerOf({
    clusterId: 'hub',
    fleet: { fleet: fleetOperations(fleet.links, 'hub'), passing },
  });
  return {
    manager,
    fleet,
    workers,
    passing,
    cut: (clusterId) => joined.get(clusterId)?.links.stop(),
    mend: async (clusterId) => {
      const { folder } = joined.get(clusterId)!;
      joined.set(clusterId, fleet.worker({ clusterId, serve: serves.get(clusterId)!, folder }));
      await fleet.linked(clusterId);
    },
    stop: async () => {
      passing.stop();
      await fleet.stop();
      await Promise.all([manager, ...Object.values(workers)].map((server) => server.stop()));
    },
  };
};

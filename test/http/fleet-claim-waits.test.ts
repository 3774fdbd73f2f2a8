import { expect } from 'chai';
import { NO_INSTANCES } from '../../src/model/pools/pool.ts';
import { noIdleInstance } from '../../src/model/pools/exhausted-pool.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { aServer } from './a-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

const WITHOUT_AND_WITH_KEY: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'Idempotency-Key': 'k' },
];

describe('a waiting claim by the name of an env', () => {
  let servers: FleetOfServers;
  let clock: TestClock;
  /** Which cluster was asked to wait for how many ms. */
  let waited: string[];

  /** Has a cluster refuse claims once they have waited for so long. */
  const refuses = (clusterId: string, refusal: Refusal, afterMs: number): void => {
    const { operations } = clusterId === 'hub' ? servers.manager : servers.workers[clusterId]!;
    Object.assign(operations, {
      claimSandbox: async (...[, { waitMs = 0 }]: Parameters<typeof operations.claimSandbox>) => {
        waited.push(`${clusterId} ${waitMs}`);
        clock.advance(Math.min(waitMs, afterMs));
        throw refusal;
      },
    });
  };
  const claim = (more: object, headers: Readonly<Record<string, string>> = {}) =>
    servers.manager.tenant.post('/sandboxes', { poolName: 'e', ...more }, { headers });

  beforeEach(async () => {
    clock = new TestClock();
    waited = [];
    servers = await aFleetOfServers(['w1', 'w2'], aServer, clock);
  });
  afterEach(() => servers.stop());

  for (const order of [
    ['w1', 'w2'],
    ['hub', 'w2'],
    ['w2', 'hub'],
  ])
    it(`waits at ${order.join(', and for the rest of its time at ')}`, async () => {
      servers.manager.operations.claimPlaces = () =>
        order.map((clusterId) => ({ clusterId, poolName: 'm', took: () => undefined }));
      const [first = '', second = ''] = order;
      refuses(first, new Refusal('TOO_MANY_WAITING', 'too many wait'), 4_000);
      refuses(second, noIdleInstance({ name: 'm' }, NO_INSTANCES), 60_000);
      const from = clock.now();
      for (const headers of WITHOUT_AND_WITH_KEY) {
        const { json } = await claim({ waitTimeoutSeconds: 10 }, headers);
        expect(json.errorCode).to.equal('POOL_EXHAUSTED');
      }
      const { json } = await claim({});

      expect(json.errorCode).to.equal('POOL_EXHAUSTED');
      const each = [`${first} 10000`, `${second} 6000`];
      expect(waited).to.deep.equal([...each, ...each, `${first} 0`, `${second} 0`]);
      expect(clock.now() - from).to.equal(20_000);
    });
});

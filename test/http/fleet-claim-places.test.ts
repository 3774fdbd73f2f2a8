import { expect } from 'chai';
import type { Requests } from '../../src/contracts/coordination/requests.ts';
import { twoRedisCoordinations } from '../support/harness/a-redis-coordination.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

/** Where two replicas of a manager note the places of claims. */
interface Places {
  readonly one: Requests;
  readonly other: Requests;
  /** The leases of what is open right now are over: its replica stood still. */
  readonly endLeases: (...of: Parameters<Requests['giveUpRequest']>) => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

const placesOfClaims = (name: string, placesOf: (servers: FleetOfServers) => Promise<Places>) =>
  describe(`places of keyed claims, stored ${name}`, () => {
    let servers: FleetOfServers;
    let places: Places;

    const preferring = (...clusters: readonly string[]): void => {
      servers.manager.operations.claimPlaces = (_caller, poolName) =>
        poolName === 'e'
          ? clusters.map((clusterId) => ({ clusterId, poolName: 'm', took: () => undefined }))
          : [];
    };
    const stock = (cluster: string, replicas: number) =>
      servers.workers[cluster]!.tenant.put('/sandboxpools/m', { replicas });
    /** The sandbox's id, or what refuses it. */
    const claimed = async (): Promise<string> => {
      const headers = { 'Idempotency-Key': 'k' };
      const { json } = await servers.manager.tenant.post(
        '/sandboxes',
        { poolName: 'e' },
        { headers },
      );
      return json.sandbox?.['sandboxId'] ?? String(json.errorCode);
    };
    const made = (): readonly number[] =>
      Object.values(servers.workers).map(({ operations }) => operations.sandboxes.size);
    /** A replica stands still before it notes this place, and another one goes on meanwhile. */
    const standsStillBefore = (noted: string, meanwhile: () => Promise<void>): void => {
      const { coordination } = servers.manager.operations;
      const { one, other } = places;
      const { placeRequest } = one;
      const standing: typeof placeRequest = async (mark, owner, place) => {
        if (place !== noted) return await placeRequest(mark, owner, place);
        await places.endLeases(mark, owner);
        Object.assign(coordination, other);
        await meanwhile();
        Object.assign(coordination, one);
        return await placeRequest(mark, owner, place);
      };
      Object.assign(coordination, one, { placeRequest: standing });
    };

    beforeEach(async () => {
      servers = await aFleetOfServers();
      for (const { tenant } of Object.values(servers.workers))
        await tenant.post('/sandboxpools', { name: 'm', templateName: 'default', replicas: 0 });
      places = await placesOf(servers);
    });
    afterEach(async () => {
      await servers.stop();
      await places.stop();
    });

    it('are unavailable once their cluster is removed from the fleet', async () => {
      preferring('removed');
      expect(await claimed()).to.equal('CLUSTER_UNAVAILABLE');
    });

    it('do not stay in flight if the store failed after a refusal', async () => {
      preferring('w1');
      const { coordination } = servers.manager.operations;
      const { placeRequest } = places.one;
      const failing: typeof placeRequest = async (mark, owner, place) => {
        if (place === undefined) throw new Error('the store is away');
        return await placeRequest(mark, owner, place);
      };
      Object.assign(coordination, places.one, { placeRequest: failing });
      expect(await claimed()).to.equal('POOL_EXHAUSTED');
      await stock('w1', 1);
      expect(await claimed()).to.match(/^w1\./);
    });

    it("are another replica's if this one hung before it tried a second member", async () => {
      preferring('w1', 'w2');
      await stock('w2', 1);
      let first = '';
      standsStillBefore('w2::m', async () => {
        await stock('w1', 1);
        first = await claimed();
      });
      expect(await claimed()).to.equal('IDEMPOTENCY_IN_FLIGHT');
      expect(first).to.match(/^w1\./);
      expect(await claimed()).to.equal(first);
      expect(made()).to.deep.equal([1, 0]);
    });

    it("are another replica's if this one hung before it tried any member", async () => {
      for (const cluster of ['w1', 'w2']) await stock(cluster, 1);
      preferring('w1', 'w2');
      let first = '';
      standsStillBefore('w1::m', async () => {
        preferring('w2', 'w1');
        first = await claimed();
      });
      expect(await claimed()).to.equal('IDEMPOTENCY_IN_FLIGHT');
      expect(await claimed()).to.equal(first);
      expect(first).to.match(/^w2\./);
      expect(made()).to.deep.equal([0, 1]);
    });
  });

placesOfClaims('in the process', async ({ manager }) => {
  const own = { ...manager.operations.coordination };
  return {
    ...{ one: own, other: own },
    endLeases: own.giveUpRequest,
    stop: async () => undefined,
  };
});

describe('over Redis', () => {
  const redis = onRedis();

  placesOfClaims('in Redis', async () => ({
    ...(await twoRedisCoordinations(redis().settings)),
    endLeases: async () => {
      const { client } = redis();
      const keys = await client.keys('*:request:*');
      await Promise.all(keys.map((key) => client.hset(key, 'until', '1')));
    },
  }));
});

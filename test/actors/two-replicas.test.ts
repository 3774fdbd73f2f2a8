import { expect } from 'chai';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aReplica, sharedStores } from '../support/harness/shared-supervisors.ts';

describe('two replicas over one truth', () => {
  it('hand out an instance once to a user who claims on both in the same millisecond', async () => {
    const stores = await sharedStores({ pool: { replicas: 1 } });
    const [one, two] = [
      await aReplica(stores, aCoordination(stores.clock)),
      await aReplica(stores, aCoordination(stores.clock)),
    ];
    one.lead();
    for (const { supervisor } of [one, two])
      await eventually(
        () => supervisor.pools.get(stores.pool.uid)?.counts.idle === 1,
        'the instance is idle on each',
      );

    const claims = await Promise.allSettled(
      [one, two].map(({ claim }) => claim(alice, { poolName: stores.pool.name })),
    );

    expect(claims.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected']);
  });

  it('report what happened to an instance while neither led', async () => {
    const stores = await sharedStores({ pool: { replicas: 1 } });
    const [one, two] = [
      await aReplica(stores, aCoordination(stores.clock)),
      await aReplica(stores, aCoordination(stores.clock)),
    ];
    const isAvailable = (): boolean => two.supervisor.pools.get(stores.pool.uid)?.counts.idle === 1;
    one.lead();
    await eventually(isAvailable, 'the instance is idle');
    const [id = ''] = stores.truth.running();
    one.die();
    const since = stores.clock.now();
    stores.truth.becomeUnavailable(id, 'HTTP 500', { since });
    await eventually(() => !isAvailable(), 'it is not');
    stores.truth.becomeAvailable(id, { since: since + 1_000 });
    await eventually(isAvailable, 'it is again');

    two.lead();

    const told: string[] = [];
    const over = new AbortController();
    for await (const { events } of two.events.follow(undefined, '0', over.signal)) {
      told.push(...events.map(({ event }) => event.reason));
      if (told.includes('Ready')) over.abort();
    }
    expect(told).to.deep.equal(['Created', 'Started', 'Unhealthy', 'Ready']);
  });
});

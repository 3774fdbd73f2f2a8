import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import { guests } from '../../src/services/keys/guests.ts';
import { endpointOperations } from '../../src/actors/sandbox/commands/open-endpoint.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';

const ENV = { SECRET: 'of the claim' };

describe('ports of a sandbox', () => {
  const claimed = async (network: 'none' | 'host') => {
    const definition = aDefinition({}, { network });
    const world = await aSupervisor({ pool: { replicas: 1, definition } });
    const { supervisor, pool, claim } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const { id } = await claim(alice, { poolName: 'default', env: ENV });
    const { env } = await endpointOperations(world).openPort(alice, id, 49_999);
    return { env, guest: () => guests(world).guestOf(id) };
  };

  it("admit guests and get access variables if the network is the sandbox's own", async () => {
    const { env, guest } = await claimed('none');

    expect(guest()).to.include({ user: alice.user, role: 'user' });
    expect(env()).to.deep.equal(ENV);
  });

  it("admit no guests and get no variables on the host's network", async () => {
    const { env, guest } = await claimed('host');

    expect(guest).to.throw(Refusal).with.property('code', 'INVALID_TOKEN');
    expect(env()).to.equal(undefined);
  });
});

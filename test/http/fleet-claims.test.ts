import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

describe('a claim by the name of an env over clusters', () => {
  let servers: FleetOfServers;
  let took: string[];

  /** The members are tried in this order; each is the pool `m` of its cluster. */
  const preferring = (...clusters: readonly string[]): void => {
    servers.manager.operations.claimPlaces = (_caller, name) =>
      name === 'e'
        ? clusters.map((clusterId) => ({
            clusterId,
            poolName: 'm',
            took: (what) => took.push(`${clusterId} ${what}`),
          }))
        : [];
  };
  const stock = async (cluster: string, replicas: number): Promise<void> => {
    const { tenant } = cluster === 'hub' ? servers.manager : servers.workers[cluster]!;
    expect((await tenant.put('/sandboxpools/m', { replicas })).status).to.equal(200);
  };
  const claim = (key?: string, more: object = {}) =>
    servers.manager.tenant.post(
      '/sandboxes',
      { poolName: 'e', ...more },
      key === undefined ? {} : { headers: { 'Idempotency-Key': key } },
    );
  const idOf = async (claimed: ReturnType<typeof claim>): Promise<string> =>
    (await claimed).json.sandbox?.['sandboxId'] ?? String((await claimed).json.errorCode);

  beforeEach(async () => {
    took = [];
    servers = await aFleetOfServers();
    for (const { tenant } of [servers.manager, ...Object.values(servers.workers)])
      await tenant.post('/sandboxpools', { name: 'm', templateName: 'default', replicas: 0 });
  });
  afterEach(() => servers.stop());

  it('goes to the first member, and once to another if the first has no stock', async () => {
    preferring('w1', 'hub', 'w2');
    await stock('w1', 1);
    await stock('hub', 1);
    await stock('w2', 1);
    expect(await idOf(claim())).to.match(/^w1\./);
    expect(await idOf(claim())).to.match(/^hub\./);
    expect(await idOf(claim())).to.equal('POOL_EXHAUSTED');
    expect(took.slice(0, 2)).to.deep.equal(['w1 one', 'w1 all']);
    preferring('w2', 'w1');
    const { json } = await claim();
    expect(json.sandbox).to.include({ poolName: 'w2::m', user: 'ada' });
  });

  it('goes to another member if a cluster is disconnected, and reports if all are', async () => {
    preferring('w1', 'w2');
    await stock('w2', 1);
    servers.cut('w1');
    await eventually(() => !servers.fleet.links.find('w1'), 'w1 is cut');
    expect(await idOf(claim('k'))).to.match(/^w2\./);
    servers.cut('w2');
    await eventually(() => !servers.fleet.links.find('w2'), 'w2 is cut');
    expect(await idOf(claim())).to.equal('CLUSTER_UNAVAILABLE');
  });

  it('is shared by all repetitions with a key, wherever stock appears in the meantime', async () => {
    preferring('w1', 'w2');
    await stock('w2', 1);
    const first = await idOf(claim('k'));
    expect(first).to.match(/^w2\./);
    await stock('w1', 5);
    await stock('w2', 5);
    for (const order of [['w1', 'w2'], ['hub', 'w1'], ['w2']]) {
      preferring(...order);
      expect(await idOf(claim('k'))).to.equal(first);
    }
    expect(await idOf(claim('k', { metadata: { a: 'b' } }))).to.equal('IDEMPOTENCY_KEY_REUSED');
  });

  it('goes anywhere with a key after a refusal, and stays at its cluster after a claim', async () => {
    preferring('w1', 'w2', 'hub');
    expect(await idOf(claim('k'))).to.equal('POOL_EXHAUSTED');
    await stock('hub', 3);
    preferring('w2', 'hub');
    const first = await idOf(claim('k'));
    expect(first).to.match(/^hub\./);
    await stock('w1', 3);
    preferring('w1', 'w2');
    expect(await idOf(claim('k'))).to.equal(first);
    expect(await idOf(claim('other'))).to.match(/^w1\./);
  });

  it('is answered again by the manager while its cluster is disconnected', async () => {
    preferring('w1', 'w2');
    await stock('w1', 1);
    const { json } = await claim('k');
    servers.cut('w1');
    await eventually(() => !servers.fleet.links.find('w1'), 'w1 is cut');
    const again = await claim('k');
    expect(again.headers['idempotency-replayed']).to.equal('true');
    expect(again.json).to.deep.equal(json);
  });

  it('is shared with a key even if the env gets members elsewhere in the meantime', async () => {
    await servers.manager.tenant.post('/sandboxpools', {
      name: 'e',
      templateName: 'default',
      replicas: 3,
    });
    await stock('w1', 3);
    preferring();
    const first = await idOf(claim('k'));
    expect(first).to.match(/^hub\./);
    preferring('w1', 'hub');
    for (let repetition = 0; repetition < 3; repetition += 1)
      expect(await idOf(claim('k'))).to.equal(first);
    expect(servers.workers['w1']!.operations.sandboxes.size).to.equal(0);
    expect(await idOf(claim('other'))).to.match(/^w1\./);
  });

  it('is shared with a key even if a replica claimed here and died before its report', async () => {
    const { operations, tenant } = servers.manager;
    await tenant.post('/sandboxpools', { name: 'e', templateName: 'default', replicas: 3 });
    await stock('w1', 3);
    const { claimSandbox } = operations;
    let claimed: Awaited<ReturnType<typeof claimSandbox>> | undefined;
    Object.assign(operations, {
      claimedBefore: async (...[, opening]: Parameters<typeof operations.claimedBefore>) => {
        await opening.open();
        return claimed;
      },
      claimSandbox: async (...of: Parameters<typeof claimSandbox>) => {
        if (claimed) return claimed;
        claimed = await claimSandbox(...of);
        throw new Error('this replica is gone');
      },
    });
    preferring();
    await claim('k');
    preferring('w1', 'hub');
    for (let repetition = 0; repetition < 2; repetition += 1)
      expect(await idOf(claim('k'))).to.equal(`hub.${claimed?.id}`);
    expect(servers.workers['w1']!.operations.sandboxes.size).to.equal(0);
  });

  it('is shared with a key even if another replica sends it elsewhere in the meantime', async () => {
    const { operations, tenant } = servers.manager;
    await tenant.post('/sandboxpools', { name: 'e', templateName: 'default', replicas: 3 });
    await stock('w1', 3);
    const { claimSandbox } = operations;
    let elsewhere: string | undefined;
    Object.assign(operations, {
      claimSandbox: async (...of: Parameters<typeof claimSandbox>) => {
        if (elsewhere === undefined) {
          elsewhere = '';
          preferring('w1', 'hub');
          elsewhere = await idOf(claim('k'));
          preferring(); // as this one sees it still
        }
        return await claimSandbox(...of);
      },
    });
    preferring();

    expect(await idOf(claim('k'))).to.equal(elsewhere);
    expect(elsewhere).to.match(/^w1\./);
    expect(operations.sandboxes.size).to.equal(0);
  });

  it('is shared with a key even if the env has lost its other members in the meantime', async () => {
    await servers.manager.tenant.post('/sandboxpools', {
      name: 'e',
      templateName: 'default',
      replicas: 3,
    });
    await stock('w2', 1);
    preferring('w1', 'w2');
    const first = await idOf(claim('k'));
    expect(first).to.match(/^w2\./);
    preferring();
    for (let repetition = 0; repetition < 2; repetition += 1)
      expect(await idOf(claim('k'))).to.equal(first);
    expect(await idOf(claim('k', { metadata: { a: 'b' } }))).to.equal('IDEMPOTENCY_KEY_REUSED');
    expect(servers.manager.operations.sandboxes.size).to.equal(0);
    expect(await idOf(claim('other'))).to.match(/^hub\./);
    expect(await idOf(claim('other'))).to.match(/^hub\./);
    expect(servers.manager.operations.sandboxes.size).to.equal(1);
  });

  it('goes to one cluster with a key even if its first answer was lost', async () => {
    preferring('w1', 'w2');
    await stock('w1', 1);
    await stock('w2', 5);
    const worker = servers.workers['w1']!.operations;
    const { claimSandbox } = worker;
    let isHeld = true;
    Object.assign(worker, {
      claimSandbox: async (...of: Parameters<typeof claimSandbox>) => {
        const claimed = await claimSandbox(...of);
        if (isHeld) servers.cut('w1'); // done, and its answer does not come
        return claimed;
      },
    });
    expect(await idOf(claim('k'))).to.equal('CLUSTER_UNAVAILABLE');
    isHeld = false;
    expect(await idOf(claim('k'))).to.equal('CLUSTER_UNAVAILABLE');
    expect(servers.workers['w2']!.operations.sandboxes.size).to.equal(0);
  });

  it('on this cluster can be repeated with its key too', async () => {
    preferring('hub', 'w1');
    await stock('hub', 3);
    const first = await idOf(claim('k'));
    expect(first).to.match(/^hub\./);
    expect(await idOf(claim('k'))).to.equal(first);
    expect(servers.manager.operations.sandboxes.size).to.equal(1);
  });
});

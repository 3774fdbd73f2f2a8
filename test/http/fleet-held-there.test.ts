import { expect } from 'chai';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { anApprovingServer, approvalIdOf, type ApprovingServer } from './an-approving-server.ts';
import { aServer } from './a-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

describe('a rule of a worker on requests to the manager', () => {
  let servers: FleetOfServers;
  let approving: ApprovingServer;

  const remove = (name: string) => servers.manager.tenant.delete(`/sandboxpools/w1::${name}`);

  beforeEach(async () => {
    servers = await aFleetOfServers(
      ['w1'],
      aServer,
      systemClock(),
      async ({ operations, ...ofFleet }) => {
        approving = await anApprovingServer(
          ['require operation=deletePool', 'deny operation=updatePool'],
          { operations, ofFleet },
        );
        return approving.server;
      },
    );
    const { tenant } = servers.workers['w1']!;
    for (const name of ['p', 'q'])
      await tenant.post('/sandboxpools', { name, templateName: 'default', replicas: 1 });
  });
  afterEach(() => servers.stop());

  it('names the deciding cluster, and lets the request pass after its approval there', async () => {
    const held = await remove('p');
    const id = approvalIdOf(held);
    expect(held.json.detail).to.include({ clusterID: 'w1', operation: 'deletePool' });
    expect(held.json.detail?.['hint'])
      .to.include('a rule of the cluster w1 holds it')
      .and.include('in its own console');
    expect((await servers.manager.tenant.get(`/approvals/${id}`)).status).to.equal(404);

    expect((await approving.approve(id)).status).to.equal(200);
    expect((await remove('p')).status).to.be.within(200, 204);
  });

  it('names the cluster that denies it', async () => {
    const { status, json } = await servers.manager.tenant.put('/sandboxpools/w1::q', {
      replicas: 2,
    });
    expect([status, json.errorCode]).to.deep.equal([403, 'APPROVAL_DENIED']);
    expect(json.detail).to.include({ clusterID: 'w1' });
    expect(json.detail?.['hint']).to.include('a rule of the cluster w1 denies it');
  });

  it('names no cluster to a caller of the worker itself', async () => {
    const { json } = await servers.workers['w1']!.tenant.delete('/sandboxpools/p');
    expect(json.detail?.['hint']).to.include('in the console, at /console/approvals');
    expect(json.detail).not.to.have.property('clusterID');
  });
});

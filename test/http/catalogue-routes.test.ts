import { expect } from 'chai';
import { aServer, type TestServer } from './a-server.ts';

describe('the catalogue over HTTP', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  it('lists instance types', async () => {
    const type = {
      name: 'small',
      showName: 'Small',
      description: 'for scripts',
      maxMultiplier: 4,
      extensions: { tier: 'a' },
      baseResources: { requests: { cpu: '250m' }, limits: { cpu: '500m', memory: '1Gi' } },
    };
    server.operations.types.push(type);

    const answer = await server.tenant.get('/instancetypes');

    expect([answer.status, answer.json]).to.deep.equal([200, { total: 1, items: [type] }]);
  });

  it("lists the volumes of the caller's namespace, whatever the request names", async () => {
    const volume = (claimName: string) => ({
      claimName,
      displayName: claimName,
      capacity: '1Gi',
      accessModes: ['ReadWriteMany'],
      storageClass: 'fast',
      phase: 'Bound' as const,
    });
    server.operations.volumesOf
      .set('team-blue', [volume('a'), volume('b')])
      .set('team-red', [volume('c')]);

    expect((await server.tenant.get('/volumes?namespace=team-red')).json).to.deep.equal({
      total: 2,
      items: [volume('a'), volume('b')],
    });
    expect((await server.stranger.get('/volumes')).json).to.deep.equal({
      total: 1,
      items: [volume('c')],
    });
    expect((await server.admin.get('/volumes')).json).to.deep.equal({ total: 0, items: [] });
  });

  it('shows the feature gates as a flat list', async () => {
    const answer = await server.tenant.get('/feature-gates');

    expect([answer.status, answer.json]).to.deep.equal([
      200,
      {
        volumes: true,
        instanceType: true,
        approvals: false,
        envs: true,
        autoscaling: true,
        multiCluster: false,
        terminal: true,
        exec: true,
        files: true,
        processes: true,
        pause: true,
        logs: true,
        quotas: true,
        compatibleApi: false,
        console: false,
      },
    ]);
  });

  it('includes its own cluster', async () => {
    const answer = await server.tenant.get('/clusters');

    expect([answer.status, answer.json]).to.deep.equal([
      200,
      {
        total: 1,
        items: [
          {
            clusterID: 'local',
            isLocal: true,
            status: 'Connected',
            lastHeartbeat: '2026-03-01T12:00:00.000Z',
          },
        ],
      },
    ]);
  });

  it('counts sandboxes', async () => {
    await server.makeShells(1);
    await server.tenant.post('/sandboxes', { poolName: 'shells' });

    expect((await server.admin.get('/admin/statistics/sandboxes')).json).to.deep.equal({
      statistics: { total: 1, byStatus: { Running: 1 }, byNamespace: { 'team-blue': 1 } },
    });
  });
});

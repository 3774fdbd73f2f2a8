import { expect } from 'chai';
import type { LinkView } from '../../src/contracts/fleet/cluster-links.ts';
import type { LinkStatus } from '../../src/model/fleet/cluster.ts';
import type { ClusterView } from '../../src/actors/views.ts';
import { onACliDaemon } from './cli-support.ts';

describe("commands about a deployment's offers", () => {
  const { daemon, sandpool } = onACliDaemon();

  it('instance-types lists the types with their sizes', async () => {
    daemon().operations.types.push({
      name: 'small',
      showName: 'Small',
      description: 'for a start',
      baseResources: { requests: { cpu: '250m' }, limits: { memory: '256Mi' } },
      maxMultiplier: 4,
      extensions: {},
    });
    expect((await sandpool('instance-types')).stdout).to.match(
      /^TYPE +CPU +MEMORY +MULTIPLIER +NAME\nsmall +250m +256Mi +to 4 +Small\n$/,
    );
    expect((await sandpool('instance-types', '-o', 'wide')).stdout).to.include('for a start');
  });

  it("volumes lists the volumes of the caller's namespace", async () => {
    const volume = {
      displayName: '',
      capacity: '1Gi',
      accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
      storageClass: '',
      phase: 'Bound' as const,
    };
    daemon().operations.volumesOf.set('team-default', [{ ...volume, claimName: 'data' }]);
    daemon().operations.volumesOf.set('team-blue', [{ ...volume, claimName: 'foreign' }]);
    expect((await sandpool('volumes')).stdout).to.match(
      /^VOLUME +CAPACITY +MODES +NAME\ndata +1Gi +ReadWriteOnce,ReadOnlyMany +-\n$/,
    );
  });

  it('clusters, features and stats show tables', async () => {
    expect((await sandpool('clusters')).stdout).to.match(
      /^CLUSTER +STATUS +LOCAL +HEARTBEAT +LINKS +LATENCY\nlocal +Connected +yes +2026-03-01T12:00:00Z +- +-\n$/,
    );
    expect((await sandpool('features')).stdout)
      .to.match(/^FEATURE +HERE\n/)
      .and.match(/^quotas +yes$/m)
      .and.match(/^multiCluster +no$/m);
    await sandpool('sandboxes', 'create');
    expect((await sandpool('stats', '--admin')).stdout).to.match(
      /^OF +SANDBOXES\nall +2\n(Idle|Running) +1\n(Idle|Running) +1\nnamespace team-default +2\n$/,
    );
    expect((await sandpool('stats')).stderr).to.include('ADMIN_REQUIRED');
  });

  it('clusters shows the links of each cluster with their latency', async () => {
    const link = (replica: string, status: LinkStatus, latencyMs?: number): LinkView => ({
      linkId: `link-of-${replica.slice(0, 8)}`,
      replica,
      status,
      openedAt: Date.parse('2026-03-01T11:00:00Z'),
      latencyMs,
      keysRemade: replica === 'west-0' ? 3 : 0,
    });
    const links = [
      link('west-0', 'Open', 1.25),
      link('west-1', 'Silent', 0.75),
      link('w-2', 'Open'),
    ];
    const flood = Array.from({ length: 64 }, () => link('\u001b[2J'.repeat(100), 'Open'));
    const others = { west: links, east: [], evil: flood };
    Object.assign(daemon().operations, {
      listClusters: (): readonly ClusterView[] =>
        Object.entries(others).map(([clusterId, of]) => ({
          clusterId,
          isLocal: false,
          status: of.length > 0 ? 'Connected' : 'Disconnected',
          lastHeartbeat: undefined,
          route: { manager: 'hub-0', links: of },
          ...(clusterId === 'east' ? { invitedUntil: Date.parse('2026-03-01T13:00:00Z') } : {}),
          ...(clusterId === 'west' ? { copyRefusedAt: Date.parse('2026-03-01T12:00:00Z') } : {}),
        })),
    });

    const { stdout } = await sandpool('clusters', '-o', 'wide');
    expect(stdout)
      .to.match(/^west +Connected +no +- +3 +1\.3 ms +hub-0$/m)
      .and.match(/^east +Invited +no +- +0 +- +hub-0$/m);
    expect((await sandpool('clusters', 'get', 'east')).stdout)
      .to.match(/^status: +Invited$/m)
      .and.match(/^invited until: +2026-03-01T13:00:00Z$/m);
    expect((await sandpool('clusters', 'get', 'west')).stdout)
      .to.match(/^reached by: +replica hub-0 of the manager$/m)
      .and.match(/^pepper: +3 promoted keys had another pepper and were stored again$/m)
      .and.match(/^runs twice: +a copy of its data was refused 2026-03-01T12:00:00Z$/m)
      .and.match(/^link-of-west-1 +west-1 +Silent +0\.8 ms +yes +2026-03-01T11:00:00Z$/m);
    const evil = (await sandpool('clusters', 'get', 'evil')).stdout;
    expect(evil)
      .to.match(/^links: +64$/m)
      .and.not.match(/^(pepper|runs twice)/m);
    expect(evil.match(/^link-of-.{60,200}$/gm)).to.have.length(16);
    expect(evil).not.to.include('\u001b');
    const unknown = await sandpool('clusters', 'get', 'north');
    expect([unknown.code, unknown.stderr]).to.deep.include(1);
    expect(unknown.stderr).to.include('there is no cluster north');
  });

  it("all print the service's own answers as JSON", async () => {
    for (const [command, key] of [
      ['instance-types', 'items'],
      ['volumes', 'items'],
      ['clusters', 'items'],
      ['features', 'quotas'],
      ['stats', 'byStatus'],
    ] as const) {
      expect(
        JSON.parse((await sandpool(command, '-o', 'json', '--admin')).stdout),
        command,
      ).to.have.property(key);
    }
  });
});

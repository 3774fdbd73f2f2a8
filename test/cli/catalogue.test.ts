import { expect } from 'chai';
import { onACliDaemon } from './cli-support.ts';

describe('what a deployment offers, on the command line', () => {
  const { daemon, sandpool } = onACliDaemon();

  it('instance-types lists them with their size', async () => {
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

  it('volumes lists those of one’s own namespace', async () => {
    const volume = {
      displayName: '',
      capacity: '1Gi',
      accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
      storageClass: '',
      phase: 'Bound' as const,
    };
    daemon().operations.volumes.set('team-default', [{ ...volume, claimName: 'data' }]);
    daemon().operations.volumes.set('team-blue', [{ ...volume, claimName: 'foreign' }]);
    expect((await sandpool('volumes')).stdout).to.match(
      /^VOLUME +CAPACITY +MODES +NAME\ndata +1Gi +ReadWriteOnce,ReadOnlyMany +-\n$/,
    );
  });

  it('clusters, features and stats show what there is', async () => {
    expect((await sandpool('clusters')).stdout).to.match(
      /^CLUSTER +STATUS +LOCAL +HEARTBEAT\nlocal +Connected +yes +2026-03-01T12:00:00Z\n$/,
    );
    expect((await sandpool('features')).stdout)
      .to.match(/^FEATURE +HERE\n/)
      .and.match(/^quotas +yes$/m)
      .and.match(/^multiCluster +no$/m);
    await sandpool('sandboxes', 'create');
    expect((await sandpool('stats', '--admin')).stdout).to.match(
      /^OF +SANDBOXES\nall +1\nRunning +1\nnamespace team-blue +1\n$/,
    );
    expect((await sandpool('stats')).stderr).to.include('ADMIN_REQUIRED');
  });

  it('as JSON they are the service’s own answers', async () => {
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

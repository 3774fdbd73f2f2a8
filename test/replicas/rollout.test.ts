import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { PatientClient } from '../support/harness/patient-client.ts';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { leaderOf } from '../support/cluster/leader-of.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { RollingPool } from '../support/harness/rolling-pool.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

describe('a rollout on a cluster', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let tenant: string;
  let namespace: string;

  before(async () => {
    tenant = await replicas().tenant('cyan', 'cleo');
    namespace = replicas().namespaceOf('cyan');
    await controlPlane().apply(aPodTemplate('rolling-pod'));
  });

  after(() => controlPlane().kubectl('delete', 'sandboxpools', '--all', '-n', namespace));

  const at = (replica: number): PatientClient =>
    new PatientClient(replicas().replica(replica).port, tenant);
  const aFullPool = async (name: string, size: number): Promise<RollingPool> => {
    await untilAnswered(201, () =>
      at(0).post('/sandboxpools', { name, templateName: 'rolling-pod', replicas: size }),
    );
    const pool = new RollingPool(at(0), name);
    await pool.until('it is full', ({ idleReplicas }) => idleReplicas === size);
    return pool;
  };
  /**
   * Undefined while another replica comes to lead. Those that don't lead hear of Sandboxes and of
   * Pods one after the other: they may know that one is gone, and not yet that another is ready.
   */
  const idleAtTheLeader = async (name: string, uid: string): Promise<number | undefined> => {
    const leader = await leaderOf(replicas(), uid);
    if (!leader) return undefined;
    const { idleReplicas } = await new RollingPool(
      new PatientClient(leader.port, tenant),
      name,
    ).status();
    return (await leaderOf(replicas(), uid)) === leader ? idleReplicas : undefined;
  };
  const podsOf = async (): Promise<readonly string[]> =>
    (await controlPlane().kubectl('get', 'pods', '-n', namespace, '-o', 'name'))
      .split('\n')
      .filter((line) => line !== '')
      .toSorted();

  it('replaces idle Pods only, and continues after a kill of the leader', async () => {
    const pool = await aFullPool('rolled', 6);
    const claimed = await untilAnswered(201, () =>
      at(1).post('/sandboxes', { poolName: 'rolled' }),
    );
    const before = await podsOf();
    const uid = await controlPlane().kubectl(
      ...['get', 'sandboxpool', 'rolled', '-n', namespace, '-o', 'jsonpath={.resolved.uid}'],
    );
    await pool.edit({
      overrides: { defaultIdleTimeout: '41m' },
      updateStrategy: { maxUnavailable: '1' },
    });
    await replicas().replica(2).kill();
    const seen: number[] = [];
    const status = await pool.until(
      'all but the claimed one are replaced',
      ({ phase, outdatedReplicas, updatedReplicas, idleReplicas, runningReplicas }) =>
        phase === 'Ready' &&
        outdatedReplicas === 0 &&
        updatedReplicas === 5 &&
        idleReplicas === 5 &&
        runningReplicas === 1,
      async () => {
        const idle = await idleAtTheLeader('rolled', uid);
        if (idle !== undefined) seen.push(idle);
      },
    );
    expect(seen).to.not.be.empty;
    expect(Math.min(...seen), 'of 5 that are unclaimed').to.be.at.least(4);
    const podName = String(claimed.json.sandbox?.['podName']);
    await eventually(
      async () =>
        (await podsOf()).filter((pod) => before.includes(pod)).join() === `pod/${podName}`,
      'of those there were the claimed one alone is left',
    );
    await replicas().replica(2).start();
    for (const replica of [0, 1, 2])
      await new RollingPool(at(replica), 'rolled').until(
        'each says the same of it',
        ({ updateRevision, conditions }) =>
          updateRevision === status.updateRevision &&
          conditions.map(({ type }) => type).join() === 'Progressing,Degraded,TemplateResolved',
      );
  });

  it('stops if Pods of the new revision cannot start, keeps the others, and gives the reason on every replica', async () => {
    const pool = await aFullPool('stopped', 4);
    await pool.edit({ overrides: { image: 'unpullable', defaultStartupTimeout: '1s' } });
    await pool.until('it is stopped', ({ phase }) => phase === 'Degraded');
    for (const replica of [0, 1, 2]) {
      const { conditions } = await new RollingPool(at(replica), 'stopped').until(
        'each says so, and shows those that stay',
        ({ phase, idleReplicas, conditions: [progressing] }) =>
          phase === 'Degraded' && progressing?.reason === 'RolloutBlocked' && idleReplicas === 3,
      );
      expect(conditions[0]?.message).to.contain('older instances remain');
    }
    await untilAnswered(201, () => at(1).post('/sandboxes', { poolName: 'stopped' }));
    await pool.edit({
      overrides: { image: 'registry.invalid/sandbox:2', defaultStartupTimeout: '10m' },
    });
    await pool.rolledOut();
  });
});

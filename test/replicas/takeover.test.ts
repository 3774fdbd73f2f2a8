import { expect } from 'chai';
import { aPodTemplate, type Replica } from '../../local-cluster/replicas.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { leaderOf } from '../support/cluster/leader-of.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const REPLICAS = 150;
/**
 * Longer than anybody here waits: what is full by then has waited for no start that never comes.
 */
const STARTUP_TIMEOUT = '10m';

describe('a replica that is killed while it fills a pool', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let tenant: string;
  const namespace = (): string => replicas().namespaceOf('violet');

  before(async () => {
    tenant = await replicas().tenant('violet', 'rita');
    await controlPlane().apply(aPodTemplate('slow-to-fail', { startupTimeout: STARTUP_TIMEOUT }));
  });

  const of = (replica: Replica): HttpClient => new HttpClient(replica.port, tenant);

  /** Of this pool. */
  const leader = async (pool: string): Promise<Replica> => {
    const uid = await controlPlane().kubectl(
      'get',
      'sandboxpool',
      pool,
      '-n',
      namespace(),
      '-o',
      'jsonpath={.resolved.uid}',
    );
    let found: Replica | undefined;
    await eventually(
      async () => (found = await leaderOf(replicas(), uid)) !== undefined,
      'somebody leads the pool',
    );
    return found ?? expect.fail('nobody leads');
  };

  const namesOf = async (kind: string): Promise<readonly string[]> =>
    (await controlPlane().kubectl('get', kind, '-n', namespace(), '-o', 'name'))
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [line.slice(line.indexOf('/') + 1)]));

  it('delays the pool only until another leads, without a failed start', async () => {
    const [any] = replicas().list;
    await untilAnswered(201, () =>
      of(any ?? expect.fail()).post('/sandboxpools', {
        name: 'taken-over',
        templateName: 'slow-to-fail',
        replicas: 0,
      }),
    );
    const victim = await leader('taken-over');
    const survivor =
      replicas().list.find((replica) => replica !== victim) ?? expect.fail('there are three');
    const client = of(survivor);
    /** Nothing where the API server is too busy to say how the pool stands. */
    const status = async (): Promise<Readonly<Record<string, unknown>>> =>
      Object((await client.get('/sandboxpools/taken-over')).json.template?.['status']);
    let begun: number;
    // No Pod becomes ready, and of a pool 128 may be starting: it can't be full before the kill.
    await controlPlane().kill('kwok', 'SIGSTOP');
    try {
      await untilAnswered(200, () =>
        client.put('/sandboxpools/taken-over', { replicas: REPLICAS }),
      );
      await eventually(
        async () => Number((await status())['startingReplicas']) > 0,
        'the pool begins to fill',
      );
      await victim.kill();
      begun = (await namesOf('sandboxes')).length;
    } finally {
      await controlPlane().kill('kwok', 'SIGCONT');
    }

    let full: Readonly<Record<string, unknown>> = {};
    await eventually(
      async () => (full = await status())['idleReplicas'] === REPLICAS,
      'the pool is full',
    );
    expect(begun, 'it was killed in the middle').to.be.within(1, REPLICAS - 1);
    expect(full).to.include({ phase: 'Ready' });
    await eventually(async () => {
      const [records, pods] = await Promise.all([namesOf('sandboxes'), namesOf('pods')]);
      return records.length === REPLICAS && pods.length === REPLICAS;
    }, 'each record has its Pod, and each Pod its record');
    const failures = replicas()
      .list.flatMap(({ log }) => log.split('\n'))
      .filter((line) => line.includes('startFailure') && line.includes('taken-over'));
    expect(failures).to.deep.equal([]);
    await client.delete('/sandboxpools/taken-over?force=true');
    client.close();
    await victim.start();
  });
});

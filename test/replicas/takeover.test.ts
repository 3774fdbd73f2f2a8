import { expect } from 'chai';
import { aPodTemplate, type Replica } from '../../local-cluster/replicas.ts';
import { shardOf } from '../../src/model/shards.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const REPLICAS = 150;
/**
 * Longer than anybody here waits: what is full by then has waited for no start that never comes.
 */
const STARTUP_TIMEOUT = '10m';

describe('a replica that is killed while it fills a pool', function () {
  this.timeout(360_000);
  const controlPlane = onTheControlPlane();
  const replicas = onReplicas(controlPlane);
  let tenant: string;
  const namespace = (): string => replicas().namespaceOf('red');

  before(async () => {
    tenant = await replicas().tenant('red', 'rita');
    await controlPlane().apply(aPodTemplate('slow-to-fail', { startupTimeout: STARTUP_TIMEOUT }));
  });

  const of = (replica: Replica): HttpClient => new HttpClient(replica.port, tenant);

  const leaderOf = async (pool: string): Promise<Replica> => {
    const uid = await controlPlane().kubectl(
      'get',
      'sandboxpool',
      pool,
      '-n',
      namespace(),
      '-o',
      'jsonpath={.resolved.uid}',
    );
    let leader: Replica | undefined;
    await eventually(async () => {
      for (const replica of replicas().list) {
        if (!replica.isRunning) continue;
        const { text } = await new HttpClient(replica.port, replicas().adminKey).get(
          '/debug/shards',
        );
        const { shards } = JSON.parse(text) as {
          readonly shards: readonly { readonly leading: boolean }[];
        };
        if (shards[shardOf(uid)]?.leading) leader = replica;
      }
      return leader !== undefined;
    }, 'somebody leads the pool');
    return leader ?? expect.fail('nobody leads');
  };

  const namesOf = async (kind: string): Promise<readonly string[]> =>
    (await controlPlane().kubectl('get', kind, '-n', namespace(), '-o', 'name'))
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [line.slice(line.indexOf('/') + 1)]));

  it('holds it up no longer than until another leads, and costs no failed start', async () => {
    const [any] = replicas().list;
    await untilAnswered(201, () =>
      of(any ?? expect.fail()).post('/sandboxpools', {
        name: 'p',
        templateName: 'slow-to-fail',
        replicas: 0,
      }),
    );
    const victim = await leaderOf('p');
    const survivor =
      replicas().list.find((replica) => replica !== victim) ?? expect.fail('there are three');
    await untilAnswered(200, () => of(survivor).put('/sandboxpools/p', { replicas: REPLICAS }));
    const status = async (): Promise<Readonly<Record<string, unknown>>> => {
      const { text } = await of(survivor).get('/sandboxpools/p');
      return (
        JSON.parse(text) as {
          readonly template: { readonly status: Readonly<Record<string, unknown>> };
        }
      ).template.status;
    };
    // Quick looks: a kubectl takes long enough for a pool to fill.
    await eventually(async () => {
      const { startingReplicas, idleReplicas } = await status();
      return Number(startingReplicas) + Number(idleReplicas) > 0;
    }, 'the pool begins to fill');

    await victim.kill();
    const begun = (await namesOf('sandboxes')).length;

    await eventually(
      async () => (await status())['idleReplicas'] === REPLICAS,
      'the pool is full',
      200_000,
    );
    expect(begun, 'it was killed in the middle').to.be.within(1, REPLICAS - 1);
    expect(await status()).to.include({ phase: 'Ready' });
    await eventually(
      async () => {
        const [records, pods] = await Promise.all([namesOf('sandboxes'), namesOf('pods')]);
        return records.length === REPLICAS && pods.length === REPLICAS;
      },
      'each record has its Pod, and each Pod its record',
      60_000,
    );
    expect(survivor.log).to.not.include('startFailure');
    await victim.start();
  });
});

import { expect } from 'chai';
import { Balancer } from '../../local-cluster/balancer.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

describe('a rolling restart', function () {
  const controlPlane = onTheControlPlane();
  // Longer than a balancer takes to see that a replica leaves, on a machine that does other things
  // too.
  const replicas = onReplicas(controlPlane, { env: { SANDPOOL_SHUTDOWN_DELAY: '6s' } });
  let balancer: Balancer;

  before(async () => {
    balancer = new Balancer(replicas().list.map(({ port }) => port));
    await balancer.start();
  });
  after(async () => {
    await balancer?.stop();
  });

  it('of all replicas in turn is not noticed by clients with kept connections behind a balancer', async () => {
    await controlPlane().apply(aPodTemplate('rolling'));
    const key = await replicas().tenant('rolling', 'rosa');
    const clients = Array.from({ length: 4 }, () => new HttpClient(balancer.port, key));
    await eventually(
      async () =>
        (
          await clients[0]?.post('/sandboxpools', {
            name: 'p',
            templateName: 'rolling',
            replicas: 1,
          })
        )?.status === 201,
      'a pool is made',
    );
    let over = false;
    let answered = 0;
    const asking = clients.map(async (client) => {
      const other: unknown[] = [];
      while (!over) {
        const { status, text } = await client
          .get('/sandboxpools/p')
          .catch((error: unknown) => ({ status: 0, text: String(error) }));
        if (status === 200) answered += 1;
        else other.push([status, text]);
        await new Promise((resolve) => {
          setTimeout(resolve, 50);
        });
      }
      client.close();
      return other;
    });

    for (const replica of replicas().list) {
      expect(await replica.stop()).to.equal(0);
      await replica.start();
      await eventually(() => balancer.ready.length === 3, 'the balancer sees all three');
    }
    over = true;

    expect((await Promise.all(asking)).flat()).to.deep.equal([]);
    expect(answered).to.be.above(50);
  });
});

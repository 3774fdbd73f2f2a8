import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { aPodTemplate, Replicas } from '../support/replicas.ts';
import { onTheControlPlane } from '../support/shared-cluster.ts';

describe('three replicas on a cluster', function () {
  this.timeout(90_000);
  const controlPlane = onTheControlPlane();
  let redis: TestRedis;
  let replicas: Replicas;
  let tenant: string;

  before(async () => {
    redis = await startRedis();
    replicas = await Replicas.start({ cluster: controlPlane(), redis: redis.settings });
    tenant = await replicas.tenant('red', 'rita');
    await controlPlane().apply(aPodTemplate('idle-pod'));
  });
  after(async () => {
    await replicas?.stop();
    await redis?.stop();
  });

  it('hand out what one of them made, on any of them', async () => {
    const [one, two, three] = replicas.list.map((replica) => replica.client(tenant));
    if (!one || !two || !three) throw new Error('there are three');
    await eventually(async () => (await one.post('/sandboxpools', { name: 'p', templateName: 'idle-pod', replicas: 3 })).status === 201, 'a pool is made');
    let id = '';
    await eventually(async () => {
      const answer = await two.post('/sandboxes', { poolName: 'p' });
      if (answer.status !== 201) console.error(answer.status, answer.text);
      id = answer.json.sandbox?.['sandboxId'] as string ?? '';
      return answer.status === 201;
    }, 'a claim');
    const got = await three.get(`/sandboxes/${id}`);
    expect(got.json.sandbox?.['status']).to.equal('Running');
    const ran = await one.post(`/sandboxes/${id}/exec`, { command: ['echo', 'hello'] });
    expect(ran.text).to.include('hello');
    expect((await three.delete(`/sandboxes/${id}`)).status).to.equal(200);
    expect((await one.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.be.oneOf(['Stopping', 'Completed']);
  });
});

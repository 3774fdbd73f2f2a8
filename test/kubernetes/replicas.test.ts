import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import type { HttpAnswer, HttpClient } from '../support/http-client.ts';
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

  const clients = (key = tenant): readonly [HttpClient, HttpClient, HttpClient] => {
    const [one, two, three] = replicas.list.map((replica) => replica.client(key));
    if (!one || !two || !three) throw new Error('there are three');
    return [one, two, three];
  };
  /** Repeats what is refused for a moment: a template that is not known yet, a usage that is counted. */
  const until = async (status: number, ask: () => Promise<HttpAnswer>): Promise<HttpAnswer> => {
    let answer: HttpAnswer | undefined;
    await eventually(async () => (answer = await ask()).status === status, `an answer of ${status}`).catch((error: unknown) => {
      throw new Error(`${String(error)}, but ${answer?.status}: ${answer?.text}`);
    });
    if (!answer) throw new Error('nothing was asked');
    return answer;
  };
  const idOf = ({ json }: HttpAnswer): string => json.sandbox?.['sandboxId'] ?? '';

  it('hand out what one of them made, on any of them', async () => {
    const [one, two, three] = clients();
    await until(201, () => one.post('/sandboxpools', { name: 'p', templateName: 'idle-pod', replicas: 3 }));

    const id = idOf(await until(201, () => two.post('/sandboxes', { poolName: 'p' })));

    expect((await three.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal('Running');
    expect((await one.post(`/sandboxes/${id}/exec`, { command: ['echo', 'hello'] })).json).to.include({ stdout: 'hello\n' });
    expect((await three.delete(`/sandboxes/${id}`)).status).to.equal(200);
    expect((await one.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.be.oneOf(['Stopping', 'Completed']);
  });

  it('lead each shard on one of them, and each tells of all', async () => {
    const [one, two, three] = clients(replicas.adminKey);
    interface Report { readonly replica: string; readonly replicas: readonly string[]; readonly shards: readonly { readonly replica?: string; readonly leading: boolean }[] }
    const reports = async (): Promise<readonly Report[]> =>
      await Promise.all([one, two, three].map(async (client) => JSON.parse((await client.get('/debug/shards')).text) as Report));

    await eventually(async () => {
      const all = await reports();
      const leaders = Array.from({ length: 16 }, (_, shard) => all.filter(({ shards }) => shards[shard]?.leading).map(({ replica }) => replica));
      return leaders.every((names, shard) => names.length === 1 && all.every(({ shards }) => shards[shard]?.replica === names[0]))
        && all.every(({ replicas: live, replica }) => live.length === 3 && live.includes(replica));
    }, 'each shard is led by one, as all of them say');
    expect((await clients()[0].get('/debug/shards')).status).to.equal(403);
  });
});

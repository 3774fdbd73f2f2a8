import { expect } from 'chai';
import { rendezvous } from '../../src/lib/rendezvous.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

describe('three replicas on a cluster', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let tenant: string;

  before(async () => {
    tenant = await replicas().tenant('crimson', 'rita');
    await controlPlane().apply(aPodTemplate('idle-pod'));
  });

  const clients = (key = tenant): readonly [HttpClient, HttpClient, HttpClient] => {
    const [one, two, three] = replicas().list.map((replica) => new HttpClient(replica.port, key));
    if (!one || !two || !three) throw new Error('there are three');
    return [one, two, three];
  };
  const idOf = ({ json }: HttpAnswer): string => json.sandbox?.['sandboxId'] ?? '';

  it('hand out the sandboxes of one replica on any of them', async () => {
    const [one, two, three] = clients();
    await untilAnswered(201, () =>
      one.post('/sandboxpools', { name: 'p', templateName: 'idle-pod', replicas: 3 }),
    );

    const id = idOf(await untilAnswered(201, () => two.post('/sandboxes', { poolName: 'p' })));

    expect((await three.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal('Running');
    expect(
      (await one.post(`/sandboxes/${id}/exec`, { command: ['echo', 'hello'] })).json,
    ).to.include({ stdout: 'hello\n' });
    expect((await three.delete(`/sandboxes/${id}`)).status).to.equal(200);
    const after = await one.get(`/sandboxes/${id}`);
    expect([after.json.sandbox?.['status'], after.json.errorCode], after.text).to.deep.be.oneOf([
      ['Stopping', undefined],
      [undefined, 'SANDBOX_NOT_FOUND'],
    ]);
    await eventually(async () => {
      const [finished] = (await two.get('/sandboxes?phase=Completed')).json.items ?? [];
      return finished?.['sandboxId'] === id && finished['endReason'] === 'deleted';
    }, 'it shows as finished elsewhere');
  });

  interface Report {
    readonly replica: string;
    readonly replicas: readonly string[];
    readonly shards: readonly { readonly replica?: string; readonly leading: boolean }[];
  }
  /** Each shard is led by the one of three replicas that it is for, as all of them say. */
  const areLed = async (): Promise<boolean> => {
    const all = await Promise.all(
      clients(replicas().adminKey).map(
        async (client) => JSON.parse((await client.get('/debug/shards')).text) as Report,
      ),
    );
    const leaders = Array.from({ length: 16 }, (_, shard) =>
      all.filter(({ shards }) => shards[shard]?.leading).map(({ replica }) => replica),
    );
    return (
      leaders.every(
        (names, shard) =>
          names.length === 1 && all.every(({ shards }) => shards[shard]?.replica === names[0]),
      ) &&
      all.every(
        ({ replicas: live, replica, shards }) =>
          live.length === 3 &&
          live.includes(replica) &&
          // Otherwise it is about to move.
          shards.every(
            ({ leading }, shard) => !leading || rendezvous(`shard-${shard}`, live) === replica,
          ),
      )
    );
  };

  it('lead each shard on one replica, and report all leaders on each', async () => {
    await eventually(areLed, 'each shard is led by one, as all of them say');
    expect((await clients()[0].get('/debug/shards')).status).to.equal(403);
  });

  it('show any actor and any replica, whichever is asked', async () => {
    const all = clients(replicas().adminKey);
    await untilAnswered(201, () =>
      clients()[0].post('/sandboxpools', {
        name: 'looked-into',
        templateName: 'idle-pod',
        replicas: 1,
      }),
    );
    interface View {
      readonly leader: { readonly replica?: string; readonly epoch?: number };
      readonly seenBy: { readonly replica: string; readonly note?: string };
    }
    const pool = `${replicas().namespaceOf('crimson')}%2Flooked-into`;
    const look = async (
      client: (typeof all)[number],
      path: string,
    ): Promise<View & { readonly replica: string }> =>
      JSON.parse((await client.get(path)).text) as View & { readonly replica: string };

    await eventually(async () => {
      const views = await Promise.all(
        all.map((client) => look(client, `/debug/actors/pool/${pool}`)),
      );
      return views.every(
        ({ leader, seenBy }) =>
          leader?.epoch !== undefined &&
          seenBy.replica === leader.replica &&
          seenBy.note === undefined &&
          leader.replica === views[0]?.leader.replica,
      );
    }, 'all show it as its leader sees it');
    const names = await Promise.all(
      all.map(async (client) => (await look(client, '/debug/queues')).replica),
    );
    for (const client of all) {
      for (const name of names) {
        await eventually(
          async () =>
            (await look(client, `/debug/actors/pool/${pool}?replica=${name}`)).seenBy?.replica ===
            name,
          `${name} is asked`,
        );
        for (const path of ['queues', 'driver', 'reflectors'])
          await eventually(
            async () => (await look(client, `/debug/${path}?replica=${name}`)).replica === name,
            `${name} tells of its ${path}`,
          );
      }
    }
    expect((await all[0].get('/debug/reflectors')).text).to.include('"name":"pods"');
    await clients()[0].delete('/sandboxpools/looked-into');
  });

  it('keep a claim whose replica was killed right after it, and continue to fill its pools', async () => {
    const pools = ['a', 'b', 'c', 'd'];
    const [one, two, three] = clients();
    for (const name of pools)
      await untilAnswered(201, () =>
        one.post('/sandboxpools', { name, templateName: 'idle-pod', replicas: 1 }),
      );
    const ids = [];
    for (const poolName of pools)
      ids.push(idOf(await untilAnswered(201, () => one.post('/sandboxes', { poolName }))));

    await replicas().replica(0).kill();

    for (const id of ids) {
      expect((await two.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal('Running');
      expect((await three.delete(`/sandboxes/${id}`)).status).to.equal(200);
    }
    for (const poolName of pools)
      await untilAnswered(201, () => three.post('/sandboxes', { poolName }));
    await replicas().replica(0).start();
  });

  it('include pools made by kubectl, and let kubectl end a sandbox', async () => {
    // Whoever leads a shard tells history of an end: between two leaders nobody sees it.
    await eventually(areLed, 'no shard moves any more');
    const namespace = replicas().namespaceOf('crimson');
    const [one, two] = clients();
    await controlPlane().apply({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxPool',
      metadata: { name: 'by-hand', namespace, annotations: { 'sandpool.dev/user': 'rita' } },
      spec: { templateName: 'idle-pod', replicas: 1 },
    });
    const id = idOf(
      await untilAnswered(201, () => one.post('/sandboxes', { poolName: 'by-hand' })),
    );

    await controlPlane().kubectl('delete', 'sandbox', podNameOf(id), '-n', namespace);

    await eventually(
      async () => (await two.get(`/sandboxes/${id}`)).status === 404,
      'it is gone everywhere',
    );
    await eventually(
      async () =>
        (await one.get('/sandboxes?phase=Completed')).json.items?.some(
          ({ sandboxId }) => sandboxId === id,
        ) === true,
      'it is in the history',
    );
  });

  it('include their names in every log line', () => {
    for (const { log, name } of replicas().list) {
      const lines = log
        .split('\n')
        .slice(0, -1) // the last one may not have come whole
        .map((line) => JSON.parse(line) as { readonly replica?: string });
      expect(lines.every(({ replica }) => replica?.startsWith(`${name}-`) === true)).to.equal(true);
    }
  });
});

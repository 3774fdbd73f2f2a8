import { expect } from 'chai';
import { aPodTemplate } from '../../local-cluster/replicas.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

describe('following an actor on replicas', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);

  interface View {
    readonly leader: { readonly replica?: string; readonly epoch?: number };
    readonly seenBy: { readonly replica: string; readonly note?: string };
  }
  const admin = (at: number): HttpClient =>
    new HttpClient(replicas().replica(at).port, replicas().adminKey);
  const looked = async (at: number, id: string): Promise<View> =>
    JSON.parse((await admin(at).get(`/debug/actors/sandbox/${id}`)).text) as View;
  const followed = async (at: number, id: string): Promise<EventReader> =>
    (
      await EventReader.open(replicas().replica(at).port, `/debug/actors/sandbox/${id}/inspect`, {
        'SERVICE-API-KEY': replicas().adminKey,
      })
    ).read();
  const idleOf = async (pool: string): Promise<string> => {
    const { items } = JSON.parse(
      (await admin(0).get(`/debug/actors?kind=sandbox&state=idle.available&pool=${pool}`)).text,
    ) as { readonly items?: readonly { readonly key: string }[] };
    return items?.[0]?.key ?? '';
  };
  /** Which of them leads it: all say so. */
  const leaderOf = async (id: string): Promise<number> => {
    let leader = -1;
    await eventually(async () => {
      const views = await Promise.all(replicas().list.map((_, at) => looked(at, id)));
      const name = views[0]?.leader?.replica;
      leader = replicas().list.findIndex((replica) => name?.startsWith(`${replica.name}-`));
      return (
        leader >= 0 &&
        views.every(
          ({ leader: each, seenBy }) =>
            each?.replica === name && each.epoch !== undefined && seenBy.note === undefined,
        )
      );
    }, 'all show it as its leader sees it');
    return leader;
  };
  const isSeenBy = (reader: EventReader, ...names: readonly string[]): boolean => {
    const told = reader.events.filter(({ event }) => event === 'seen-by').at(-1)?.data;
    return (
      told !== undefined &&
      names.some((name) => String(told['replica']).startsWith(`${name}-`)) &&
      told['note'] === undefined
    );
  };
  /** The moves that came after who tells them. */
  const moves = (reader: EventReader): readonly Readonly<Record<string, unknown>>[] => {
    const from = reader.events.findLastIndex(({ event }) => event === 'seen-by');
    return reader.events
      .slice(from + 1)
      .filter(({ event }) => event === undefined)
      .map(({ data }) => data);
  };

  it('shows the same moves on each, with the leader, and continues with the next leader', async () => {
    const key = await replicas().tenant('rose', 'rita');
    await controlPlane().apply(aPodTemplate('idle-pod'));
    const owner = new HttpClient(replicas().replica(0).port, key);
    await untilAnswered(201, () =>
      owner.post('/sandboxpools', { name: 'followed', templateName: 'idle-pod', replicas: 1 }),
    );
    const pool = `${replicas().namespaceOf('rose')}/followed`;
    await eventually(async () => (await idleOf(pool)) !== '', 'one is idle');
    const id = await idleOf(pool);
    const leader = await leaderOf(id);
    const follower = (leader + 1) % 3;
    const leads = replicas().replica(leader).name;
    const others = replicas().list.flatMap(({ name }) => (name === leads ? [] : [name]));
    const client = new HttpClient(replicas().replica(follower).port, key);
    const readers = [await followed(leader, id), await followed(follower, id)] as const;
    await eventually(() => readers.every((reader) => isSeenBy(reader, leads)), 'its leader tells');

    await untilAnswered(201, () => client.post('/sandboxes', { poolName: 'followed' }));
    await eventually(
      () => readers.every((reader) => moves(reader).some(({ to }) => to === 'running')),
      'both tell that it runs',
    );
    await eventually(
      () => JSON.stringify(moves(readers[1])) === JSON.stringify(moves(readers[0])),
      'both tell the same',
    );

    await replicas().replica(leader).kill();
    await eventually(() => isSeenBy(readers[1], ...others), 'another leads, and tells');
    await untilAnswered(200, () => client.delete(`/sandboxes/${id}`));
    await eventually(() => readers[1].events.at(-1)?.event === 'end', 'its end is told');
    await replicas().replica(leader).start();
    // what both saw may be told twice
    expect(moves(readers[1]).map(({ to }) => String(to).split('.')[0])).to.include('stopping');
    expect(readers[1].events.filter(({ event }) => event === 'reset')).to.deep.equal([]);
  });
});

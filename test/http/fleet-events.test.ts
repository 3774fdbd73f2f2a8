import { expect } from 'chai';
import type { EventRecord } from '../../src/model/event.ts';
import { happens as note } from '../support/harness/engine-operations.ts';
import { EventReader, type ReadEvent } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aServer } from './a-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

const ADA = { namespace: 'team-blue', team: 'blue', user: 'ada' };

describe('GET /events of a manager', () => {
  let servers: FleetOfServers;
  const readers: EventReader[] = [];

  beforeEach(async () => {
    servers = await aFleetOfServers();
  });
  afterEach(async () => {
    for (const reader of readers.splice(0)) reader.close();
    await servers.stop();
  });

  const serverOf = (clusterId: string) => servers.workers[clusterId] ?? servers.manager;
  const happens = (clusterId: string, pool: string, owner = ADA): void =>
    note(serverOf(clusterId).operations, {
      reason: 'Filled',
      at: Date.now(),
      owner,
      poolName: pool,
      replicas: 1,
    } as EventRecord);
  const follow = async (query = '', after?: string): Promise<EventReader> => {
    const reader = await EventReader.open(servers.manager.port, `/events${query}`, {
      'SERVICE-API-KEY': servers.manager.tenant.key ?? '',
      ...(after === undefined ? {} : { 'Last-Event-ID': after }),
    });
    readers.push(reader);
    return reader.read();
  };
  /** Follows from where each of the clusters has begun. */
  const followAll = async (of = ['hub', 'w1', 'w2']): Promise<EventReader> => {
    const reader = await follow('?begin=true');
    await reader.until(
      (all) => all.filter(({ event }) => event === 'begin').length === of.length,
      'all have begun',
    );
    return reader;
  };
  const poolsIn = (events: readonly ReadEvent[]): readonly unknown[] =>
    events.flatMap(({ event, data }) => (event === undefined ? [data['poolName']] : []));
  const heard = (reader: EventReader, pools: readonly string[]) =>
    reader.until((all) => poolsIn(all).length >= pools.length, pools.join(' '));
  const cut = async (clusterId: string): Promise<void> => {
    servers.cut(clusterId);
    await eventually(() => !servers.fleet.links.find(clusterId), 'the link is cut');
  };

  it("includes all clusters by name, and each tenant's own events", async () => {
    const reader = await followAll();
    for (const clusterId of ['hub', 'w1', 'w2']) {
      happens(clusterId, 'theirs', { namespace: 'team-red', team: 'red', user: 'eve' });
      happens(clusterId, 'mine');
      await heard(reader, [clusterId]);
    }
    const events = await heard(reader, ['hub', 'w1', 'w2']);
    expect(poolsIn(events)).to.have.members(['hub::mine', 'w1::mine', 'w2::mine']);
    expect(events.find(({ data }) => data['poolName'] === 'w1::mine')?.data).to.include({
      clusterID: 'w1',
      user: 'ada',
      reason: 'Filled',
    });
  });

  it("resumes after the client's last event of each cluster", async () => {
    const reader = await followAll();
    happens('w1', 'one');
    const [last] = (await heard(reader, ['one'])).slice(-1);
    reader.close();
    for (const clusterId of ['hub', 'w1', 'w2']) happens(clusterId, 'missed');
    const again = await follow('', last?.id);
    const events = await heard(again, ['hub', 'w1', 'w2']);
    expect(poolsIn(events)).to.have.members(['hub::missed', 'w1::missed', 'w2::missed']);
    expect(events.some(({ event }) => event === 'reset')).to.equal(false);
  });

  it('reports a silent cluster, and later resumes there', async () => {
    const reader = await followAll();
    happens('w1', 'before');
    await heard(reader, ['before']);
    await cut('w1');
    const saying = (incomplete: boolean) =>
      reader.until(
        (all) =>
          all.some(({ event, data }) => event === 'cluster' && data['incomplete'] === incomplete),
        String(incomplete),
      );
    await saying(true);
    happens('w1', 'meanwhile');
    happens('w2', 'other');
    await heard(reader, ['before', 'other']);
    await servers.mend('w1');
    await saying(false);
    happens('w1', 'after');
    const events = await heard(reader, ['before', 'other', 'meanwhile', 'after']);
    expect(poolsIn(events)).to.deep.equal([
      'w1::before',
      'w2::other',
      'w1::meanwhile',
      'w1::after',
    ]);
    expect(events.flatMap(({ event, data }) => (event === 'cluster' ? [data] : []))).to.deep.equal([
      { clusterID: 'w1', incomplete: true },
      { clusterID: 'w1', incomplete: false },
    ]);
  });

  it('reports possibly missed events of a cluster without a known position', async () => {
    await cut('w2');
    const reader = await followAll(['hub', 'w1']);
    await servers.mend('w2');
    const events = await reader.until(
      (all) => all.some(({ event, data }) => event === 'reset' && data['clusterID'] === 'w2'),
      'w2 is reset',
    );
    expect(events.filter(({ event }) => event === 'reset')).to.have.length(1);
    const unknown = await follow('', '17');
    const [first] = await unknown.until((all) => all.length > 0, 'reset');
    expect(first).to.deep.equal({ event: 'reset', data: {} });
  });

  it('can be limited to one cluster', async () => {
    const reader = await follow('?begin=true&clusterID=w2');
    await reader.until((all) => all.length === 1, 'it has begun');
    happens('hub', 'no');
    happens('w1', 'no');
    happens('w2', 'yes');
    expect(poolsIn(await heard(reader, ['yes']))).to.deep.equal(['w2::yes']);
    await cut('w1');
    const refused = await servers.manager.tenant.get('/events?clusterID=w1');
    expect([refused.status, refused.json.errorCode]).to.deep.equal([503, 'CLUSTER_UNAVAILABLE']);
  });

  it('closes its cluster streams when its client disconnects', async () => {
    const reader = await followAll();
    const followers = (): readonly number[] =>
      ['hub', 'w1', 'w2'].map((clusterId) => serverOf(clusterId).operations.open.followers);
    expect(followers()).to.deep.equal([1, 1, 1]);
    reader.close();
    await eventually(() => followers().every((count) => count === 0), 'none follows');
  });

  it('follows many clusters without a warning of leaked listeners', async () => {
    await servers.stop();
    servers = await aFleetOfServers(['w1'], ({ fleet: { fleet, passing }, clusterId }) => {
      const [w1] = fleet.listOthers();
      const listOthers = () =>
        Array.from({ length: 72 }, (_, n) => ({
          ...w1!,
          clusterId: `n${n}`,
          status: n < 60 ? ('Disconnected' as const) : w1!.status,
        }));
      const wayTo = (named: string) => ({ ...fleet.wayTo('w1'), clusterId: named });
      return aServer({ clusterId, fleet: { fleet: { ...fleet, listOthers, wayTo }, passing } });
    });
    const warned: string[] = [];
    const hear = ({ message }: Error): unknown => warned.push(message);
    process.on('warning', hear);
    try {
      const reader = await follow();
      const { open } = serverOf('w1').operations;
      await eventually(() => open.followers === 12, 'all connected clusters are followed');
      await reader.until((all) => all.length === 60, 'the others are reported');
      expect(warned).to.deep.equal([]);
    } finally {
      process.off('warning', hear);
    }
  });

  it('loses nothing of a flood with a slow client', async () => {
    const reader = await EventReader.open(servers.manager.port, '/events?begin=true', {
      'SERVICE-API-KEY': servers.manager.tenant.key ?? '',
    });
    readers.push(reader);
    await eventually(
      () => ['w1', 'w2'].every((id) => serverOf(id).operations.open.followers === 1),
      'both are followed',
    );
    for (let n = 0; n < 2_000; n += 1)
      for (const clusterId of ['w1', 'w2']) happens(clusterId, `p${n}`);
    reader.read();
    const events = await reader.until((all) => poolsIn(all).length === 4_000, 'all');
    for (const clusterId of ['w1', 'w2'])
      expect(poolsIn(events).filter((pool) => String(pool).startsWith(clusterId))).to.deep.equal(
        Array.from({ length: 2_000 }, (_, n) => `${clusterId}::p${n}`),
      );
  });
});

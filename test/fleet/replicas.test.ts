import { expect } from 'chai';
import { once } from 'node:events';
import { Agent, createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { eventually } from '../support/harness/eventually.ts';
import { ManagerReplicas, type ManagerReplica } from './manager-replicas.ts';

/** The server of a worker's replica, which answers with its name. */
const named = (name: string) => {
  const server = createServer((_request, response) => response.end(name));
  return (connection: Duplex): void => void server.emit('connection', connection);
};

const ask = async (replica: ManagerReplica, clusterId: string): Promise<string> => {
  const way = replica.links.find(clusterId);
  if (!way) throw new Error(`${replica.name} has no link to ${clusterId}`);
  const asked = httpRequest({
    agent: Object.assign(new Agent(), { createConnection: () => way.dial() }),
    host: 'worker',
  }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of answer) text += String(chunk);
  return text;
};

describe('a manager with several replicas', () => {
  let manager: ManagerReplicas;

  beforeEach(async () => {
    manager = await ManagerReplicas.start(3);
  });
  afterEach(() => manager.stop());

  it('is linked on each of them, by a worker that knows one address', async () => {
    const { token } = await manager.first.registry.invite('w1');
    const { told } = manager.worker({ clusterId: 'w1', joinToken: token, serve: named('w1') });
    await manager.linkedEverywhere('w1');
    for (const replica of manager.list) expect(await ask(replica, 'w1')).to.equal('w1');
    expect(told).to.deep.equal([]);
  });

  it('is followed by its workers from replica to replica', async () => {
    const { token } = await manager.first.registry.invite('w1');
    manager.worker({ clusterId: 'w1', joinToken: token, serve: named('w1') });
    await manager.linkedEverywhere('w1');
    for (let n = 0; n < 3; n += 1) {
      await manager.add(`new-${n}`);
      await manager.linkedEverywhere('w1');
      await manager.remove(manager.first);
    }
    await manager.linkedEverywhere('w1');
    expect(manager.list.map(({ name }) => name)).to.deep.equal(['new-0', 'new-1', 'new-2']);
    for (const replica of manager.list) expect(await ask(replica, 'w1')).to.equal('w1');
  });

  it('accepts a join token once, on any replica', async () => {
    const { token } = await manager.first.registry.invite('w1');
    const thieves = Array.from({ length: 4 }, (_, n) =>
      manager.worker({ clusterId: 'w1', replica: `thief-${n}`, joinToken: token }),
    );
    await manager.linkedEverywhere('w1');
    await eventually(
      () => thieves.filter(({ told }) => told.length > 0).length === 3,
      'all but one are refused',
    );
    const refusals = thieves.flatMap(({ told }) => told.slice(0, 1));
    for (const why of refusals) expect(why).to.include('was already used');
  });

  it('spreads calls over those replicas of a worker that accept them', async () => {
    const { token } = await manager.first.registry.invite('w1');
    const one = { clusterId: 'w1', replica: 'a', joinToken: token, serve: named('a') };
    const { links, folder } = manager.worker(one);
    await manager.linkedEverywhere('w1');
    manager.worker({ clusterId: 'w1', replica: 'b', folder, serve: named('b') });
    const answersOf = async (replica: ManagerReplica): Promise<string> =>
      [await ask(replica, 'w1'), await ask(replica, 'w1')].sort().join();
    for (const replica of manager.list)
      await eventually(async () => (await answersOf(replica)) === 'a,b', 'both answer');
    links.leave();
    for (const replica of manager.list)
      await eventually(async () => (await answersOf(replica)) === 'b,b', 'one does');
    for (const replica of manager.list) {
      const shown = () => replica.links.list()[0]?.links ?? [];
      await eventually(
        () => shown().every(({ latencyMs }) => latencyMs !== undefined && latencyMs > 0),
        'heartbeats came back over both',
      );
      const stands = shown().map((link) => `${link.replica} ${link.status}`);
      expect(stands.sort()).to.deep.equal(['a Leaving', 'b Open']);
      expect(replica.links.find('w1')?.linkId).to.equal(
        shown().find(({ status }) => status === 'Open')?.linkId,
      );
    }
  });

  it('links one of two daemons with copies of a data folder, the same one on each replica', async () => {
    const { token } = await manager.first.registry.invite('w1');
    const first = manager.worker({
      ...{ clusterId: 'w1', replica: 'a', start: 'first', joinToken: token },
      serve: named('first'),
    });
    await manager.linkedEverywhere('w1');
    const second = manager.worker({
      ...{ clusterId: 'w1', replica: 'b', start: 'second', folder: first.folder },
      serve: named('second'),
    });
    await eventually(() => second.told.length > 0, 'the copy is refused');
    expect(second.told[0]).to.include('Stop one of the two for good');
    await eventually(
      () => manager.list.some(({ links }) => (links.refused.counts.get('runs-twice') ?? 0) > 0),
      'it is counted',
    );
    for (const replica of manager.list) {
      expect(replica.links.list()[0]?.links.map((link) => link.replica)).to.deep.equal(['a']);
      expect(await ask(replica, 'w1')).to.equal('first');
    }
    first.links.stop();
    await manager.linkedEverywhere('w1');
    for (const replica of manager.list)
      await eventually(
        async () => (await ask(replica, 'w1').catch(() => '')) === 'second',
        'the copy is linked',
      );
  });

  it('excludes a cluster whose record is deleted, on each replica', async () => {
    const { token } = await manager.first.registry.invite('w1');
    const { told } = manager.worker({ clusterId: 'w1', joinToken: token });
    await manager.linkedEverywhere('w1');
    const record = await manager.clusters.get('w1');
    await manager.clusters.remove(record ?? expect.fail());
    await eventually(
      () => told.some((why) => why.includes('needs a valid join token')),
      'it is refused',
    );
    await eventually(
      () => manager.list.every(({ links }) => links.find('w1') === undefined),
      'each of them has shut it out',
    );
  });
});

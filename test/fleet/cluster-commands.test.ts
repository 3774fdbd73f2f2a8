import { expect } from 'chai';
import type { Duplex } from 'node:stream';
import type { AuditEntry, AuditSink } from '../../src/contracts/audit.ts';
import { clusterCommands } from '../../src/daemon/commands/cluster-commands.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest } from './a-fleet.ts';

describe('commands on clusters', () => {
  let fleet: FleetUnderTest;
  let audited: AuditEntry[];

  beforeEach(async () => {
    fleet = await FleetUnderTest.start();
    audited = [];
  });
  afterEach(() => fleet.stop());

  const run = async (path: string, body: unknown) => {
    const audit: AuditSink = {
      note: (entry) => void audited.push(entry),
      count: () => undefined,
    };
    const answer = await clusterCommands(fleet, audit)[path]!(body);
    return { ...answer, body: answer.body as { readonly [field: string]: unknown } };
  };
  const lines = () => audited.map(({ operation, status, target }) => [operation, status, target]);

  it('are audited, without the token', async () => {
    const { status, body } = await run('/clusters/join-token', { clusterID: 'west' });
    expect(status).to.equal(200);
    expect(body['token']).to.match(/^spj_/);
    expect((await run('/clusters/remove', { clusterID: 'west' })).status).to.equal(200);
    expect(lines()).to.deep.equal([
      ['makeJoinToken', 200, { clusterID: 'west' }],
      ['removeCluster', 200, { clusterID: 'west' }],
    ]);
    expect(JSON.stringify(audited)).not.to.include(String(body['token']));
  });

  it('are refused and audited if they are invalid', async () => {
    for (const body of [undefined, null, {}, [], { clusterID: 7 }, { clusterID: 'a.b' }, 'west'])
      for (const path of ['/clusters/join-token', '/clusters/remove'])
        expect((await run(path, body)).status, JSON.stringify(body)).to.be.within(400, 404);
    const long = await run('/clusters/remove', { clusterID: 'x'.repeat(100_000) });
    expect(long.body['errorCode']).to.equal('CLUSTER_NOT_FOUND');
    expect(JSON.stringify(audited)).to.have.length.below(10_000);
  });

  it('close the link of a removed cluster, whose key and token are no longer accepted', async () => {
    const serve = (connection: Duplex): void => void connection.destroy();
    const { folder } = await fleet.join({ clusterId: 'west', serve });
    const { token } = await fleet.registry.invite('west');
    await run('/clusters/remove', { clusterID: 'west' });
    expect([fleet.links.find('west'), fleet.links.list()]).to.deep.equal([undefined, []]);
    for (const terms of [{ folder }, { joinToken: token }]) {
      const again = fleet.worker({ clusterId: 'west', serve, ...terms });
      await eventually(() => again.told.length > 0, 'it is refused');
      expect(fleet.links.find('west')).to.equal(undefined);
    }
    await fleet.join({ clusterId: 'west', serve }); // by a new token
  });
});

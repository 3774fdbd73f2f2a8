import { expect } from 'chai';
import type { Duplex } from 'node:stream';
import { fleetOperations } from '../../src/fleet/replication/fleet-operations.ts';
import { JOIN_TOKEN_MS } from '../../src/fleet/link/cluster-registry.ts';
import { envCopies } from '../../src/fleet/link/env-copies.ts';
import { presentCluster } from '../../src/http/resources/catalogue/presenter.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest } from './a-fleet.ts';

const serve = (connection: Duplex): void => void connection.destroy();

const fail = (): never => {
  throw new Error('nothing is asked');
};

describe('a cluster that was only invited', () => {
  let clock: TestClock;
  let fleet: FleetUnderTest;

  beforeEach(async () => {
    clock = new TestClock();
    fleet = await FleetUnderTest.start({ clock });
  });
  afterEach(() => fleet.stop());

  /** As the answer's JSON has it. */
  const shown = (): readonly ReturnType<typeof presentCluster>[] =>
    JSON.parse(JSON.stringify(fleetOperations(fleet.links, 'hub').listShown().map(presentCluster)));
  const codeOfWay = (clusterId: string): unknown => {
    try {
      return fleetOperations(fleet.links, 'hub').wayTo(clusterId).clusterId;
    } catch (error) {
      return (error as { readonly code?: string }).code;
    }
  };

  it('is shown as invited, and cannot be used until it joins', async () => {
    const { token, endsAt } = await fleet.registry.invite('west');
    const { listOthers } = fleetOperations(fleet.links, 'hub');
    const copies = envCopies({ links: fleet.links, client: { ask: fail } });
    expect([listOthers(), codeOfWay('west'), copies.knows('west')]).to.deep.equal([
      [],
      'CLUSTER_NOT_FOUND',
      false,
    ]);
    expect([copies.isRemoved('west'), copies.isRemoved('east')]).to.deep.equal([false, true]);
    expect(shown()).to.deep.equal([
      {
        clusterID: 'west',
        isLocal: false,
        status: 'Disconnected',
        invitedUntil: new Date(endsAt).toISOString(),
      },
    ]);

    fleet.worker({ clusterId: 'west', serve, joinToken: token });
    await fleet.linked('west');
    expect([listOthers().length, codeOfWay('west'), copies.knows('west')]).to.deep.equal([
      1,
      'west',
      true,
    ]);
    expect(shown()[0]).to.include({ status: 'Connected' }).and.not.have.property('invitedUntil');
  });

  it('is deleted after its token has expired, unless it has joined', async () => {
    await fleet.join({ clusterId: 'east', serve });
    await fleet.registry.invite('east'); // for another machine, which never came
    await fleet.registry.invite('wset');
    clock.advance(JOIN_TOKEN_MS / 2);
    const { token } = await fleet.registry.invite('west');
    const ids = () => shown().map(({ clusterID }) => clusterID);
    expect(ids()).to.deep.equal(['east', 'west', 'wset']);

    clock.advance(JOIN_TOKEN_MS / 2);
    await eventually(() => !ids().includes('wset'), 'it is forgotten');
    expect(ids()).to.deep.equal(['east', 'west']);
    fleet.worker({ clusterId: 'west', serve, joinToken: token });
    await fleet.linked('west');
    await fleet.registry.invite('late');
    clock.advance(JOIN_TOKEN_MS);
    await eventually(() => !ids().includes('late'), 'it is forgotten');
    expect(fleet.links.list().map(({ clusterId }) => clusterId)).to.deep.equal(['east', 'west']);
  });

  it('stays after a new invitation while another one is deleted', async () => {
    for (const id of ['one', 'two']) await fleet.registry.invite(id);
    const { store } = fleet;
    const { remove } = store;
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let isHeld = false;
    store.remove = async (record) => {
      isHeld = true;
      if (record.clusterId === 'one') await held;
      await remove.call(store, record);
    };
    clock.advance(JOIN_TOKEN_MS);
    await eventually(() => isHeld, 'the first one is about to go');
    const { token } = await fleet.registry.invite('two');
    goOn();
    await eventually(() => shown().every(({ clusterID }) => clusterID !== 'one'), 'it went');

    fleet.worker({ clusterId: 'two', serve, joinToken: token });
    await fleet.linked('two');
  });
});

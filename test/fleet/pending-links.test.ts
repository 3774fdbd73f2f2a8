import { expect } from 'chai';
import { connect, type Socket } from 'node:net';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest, noCopies } from './a-fleet.ts';
import { HELLO } from './hostile-ends.ts';
import { PendingLinks } from '../../src/fleet/link/manager-links.ts';
import type { ManagerLink } from '../../src/fleet/link/manager-link.ts';

describe('links that have yet to prove their identity', () => {
  const aLink = (cut: unknown[], name: string): ManagerLink =>
    ({ cut: () => void cut.push(name) }) as unknown as ManagerLink;

  it('displace each other: first the oldest of an address with too many', () => {
    const cut: unknown[] = [];
    const links = new PendingLinks();
    links.add(aLink(cut, 'other'), 'b');
    for (let n = 0; n < 10; n += 1) links.add(aLink(cut, `a${n}`), 'a');
    expect(cut).to.deep.equal(['a0', 'a1']);
    for (let n = 0; n < 30; n += 1) links.add(aLink(cut, `c${n}`), `c${n}`);
    expect(cut.slice(2)).to.deep.equal(['a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']);
  });

  it('displace only those of their own cluster once they are proved', () => {
    const cut: unknown[] = [];
    const links = new PendingLinks();
    const added = (name: string): ManagerLink => {
      const link = aLink(cut, name);
      links.add(link, 'a');
      return link;
    };
    for (let n = 0; n < 65; n += 1) links.proved(added(`p${n}`), 'west');
    links.proved(added('east'), 'east');
    expect(cut).to.deep.equal(['p0']);
    for (let n = 0; n < 8; n += 1) added(`a${n}`);
    expect(cut).to.deep.equal(['p0']);
    const late = added('late');
    links.delete(late); // it was cut
    links.proved(late, 'west');
    links.cutAll('the manager stops');
    expect(cut).to.have.length(1 + 7 + 64 + 1 + 1);
    expect(cut).to.include('east').and.not.to.include('late');
  });

  /** Waits until all but 8 of so many that say nothing were cut. */
  const silent = async (fleet: FleetUnderTest, idle: Socket[], many: number): Promise<void> => {
    for (let n = 0; n < many; n += 1) {
      const socket = connect(fleet.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.resume().write(HELLO);
      idle.push(socket);
    }
    await eventually(
      () => idle.filter(({ closed }) => closed).length >= many - 8,
      'too many are cut',
    );
  };

  it('do not keep others from proving theirs', async () => {
    const fleet = await FleetUnderTest.start();
    const idle: Socket[] = [];
    try {
      await silent(fleet, idle, 100);
      await fleet.join({ clusterId: 'w1', serve: () => undefined });
    } finally {
      for (const socket of idle) socket.destroy();
      await fleet.stop();
    }
  });

  it('do not close a proved link that still receives keys', async () => {
    // time stands still: a link that is cut is not opened again
    const fleet = await FleetUnderTest.start({ clock: new TestClock() });
    const idle: Socket[] = [];
    let goOn: () => void = () => undefined;
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    let isHeld = false;
    const take = async (): Promise<void> => {
      isHeld = true;
      await mayGoOn;
    };
    const keys = {
      ...noCopies,
      begin: (manager: string) => ({ ...noCopies.begin(manager), take }),
    };
    try {
      const { token } = await fleet.registry.invite('w1');
      fleet.worker({ clusterId: 'w1', serve: () => undefined, joinToken: token, keys });
      await eventually(() => isHeld, 'it is told of keys');
      await silent(fleet, idle, 20);
      goOn();
      await fleet.linked('w1');
    } finally {
      for (const socket of idle) socket.destroy();
      await fleet.stop();
    }
  });
});

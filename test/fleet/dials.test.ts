import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/contracts/log.ts';
import { newFleetKey } from '../../src/fleet/link/fleet-keys.ts';
import { WorkerLinks } from '../../src/fleet/link/worker-links.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  credentialsIn,
  FleetUnderTest,
  noCopies,
  noKeys,
  noTemplateCopies,
  noTemplates,
} from './a-fleet.ts';

/** Short of the wait after many dials in vain, which is 5 s. */
const SOON_MS = 4_000;

describe('the dials of a worker', () => {
  let clock: TestClock;
  let fleet: FleetUnderTest | undefined;
  /** Of the manager, as it says. */
  let replicas: readonly string[];
  let dials: number;

  beforeEach(() => {
    [clock, replicas, dials] = [new TestClock(), ['hub-0'], 0];
  });
  afterEach(async () => {
    await fleet?.stop();
    fleet = undefined;
  });

  /** Its address leads to one of two replicas alone, and it has dialled that in vain for long. */
  const waiting = async (): Promise<FleetUnderTest> => {
    fleet = await FleetUnderTest.start({ clock, replicas: () => replicas });
    const { told, links } = await fleet.join({
      clusterId: 'w1',
      serve: () => undefined,
      keys: { ...noCopies, leadsTo: () => void (dials += 1) },
    });
    replicas = ['hub-0', 'hub-1'];
    await afterMoves(() => told.length > 0, 100);
    expect(told[0]).to.include('reaches only some of');
    expect(links.standings[0]).to.include({ links: 1, failed: 0 });
    return fleet;
  };
  const afterMoves = (isSo: () => boolean, ms = 10): Promise<void> =>
    eventually(() => {
      if (!isSo()) clock.advance(ms);
      return isSo();
    }, 'it comes about as time goes on');

  it('happen at once if another replica replaces one, despite a pending delay', async () => {
    await waiting();
    const [before, began] = [dials, clock.now()];
    replicas = ['hub-0', 'hub-2'];
    clock.advance(1_000); // each replica looks so often
    await afterMoves(() => dials > before);
    expect(clock.now() - began).to.be.below(SOON_MS);
  });

  it('happen at once after a broken link, despite a pending delay for another replica', async () => {
    const { links } = await waiting();
    const { linkId } = links.find('w1') ?? {};
    const began = clock.now();
    fleet?.restart(noKeys);
    await eventually(() => !links.find('w1'), 'it is cut');
    await afterMoves(() => fleet?.links.find('w1') !== undefined);
    expect(clock.now() - began).to.be.below(SOON_MS);
    expect(fleet?.links.find('w1')?.linkId).not.to.equal(linkId);
  });

  it('reach each replica, even if one appeared while another admitted the cluster', async () => {
    const key = newFleetKey();
    const templates = {
      ...noTemplates,
      follow: () => {
        replicas = ['hub-0', 'hub-1']; // after the welcome
        clock.advance(1_000);
        return () => undefined;
      },
    };
    fleet = await FleetUnderTest.start({ clock, key, templates, replicas: () => replicas });
    const { links } = await fleet.join({ clusterId: 'w1', serve: () => undefined });
    await eventually(() => links.missing(key.publicKey) === 1, 'it knows both');
  });

  it('are repeated if a link broke during its start, without a link at the manager', async () => {
    let isFirst = true;
    const templates = {
      ...noTemplates,
      follow: () => {
        if (isFirst) fleet?.restart(noKeys);
        isFirst = false;
        return () => undefined;
      },
    };
    fleet = await FleetUnderTest.start({ clock, templates });
    const { links } = fleet;
    const { token } = await fleet.registry.invite('w1');
    fleet.worker({ clusterId: 'w1', joinToken: token, serve: () => undefined });
    await afterMoves(() => fleet?.links.find('w1') !== undefined);
    expect(links.list()).to.have.nested.property('[0].links').that.deep.equals([]);
  });

  it('time out after 10 s, even if the answer arrives byte by byte', async () => {
    const sockets: Socket[] = [];
    let tricks: NodeJS.Timeout | undefined;
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => undefined));
      tricks ??= setInterval(() => socket.write('H'), 20);
      socket.write('HTTP/1.1 101 Switching Protocols\r\nX-');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-worker-'));
    const told: string[] = [];
    const links = new WorkerLinks({
      ...{ clusterId: 'w1', replica: 'w1-0', clock },
      managers: [`ws://127.0.0.1:${(server.address() as AddressInfo).port}`],
      credentials: credentialsIn(folder),
      log: { ...silentLog, warn: ({ why }) => void told.push(String(why)) },
      ...{ keys: noCopies, templates: noTemplateCopies, serve: () => undefined },
    });
    try {
      links.start();
      await eventually(() => sockets.length === 1, 'it dials');
      clock.advance(10_000);
      expect(told).to.deep.equal(['it took too long to start']);
      clock.advance(1_000);
      await eventually(() => sockets.length === 2, 'it dials anew');
    } finally {
      clearInterval(tricks);
      links.stop();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  });
});

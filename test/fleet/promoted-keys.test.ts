import { expect } from 'chai';
import type { Duplex } from 'node:stream';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { newFleetKey } from '../../src/fleet/link/fleet-keys.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { turns } from '../support/harness/turns.ts';
import { FleetUnderTest, type TestWorker } from './a-fleet.ts';
import { ClusterKeys } from './a-promoting-fleet.ts';

const HOUR_MS = 3_600_000;
const serve = (connection: Duplex): void => void connection.destroy();

describe('promoted keys', () => {
  let hub: ClusterKeys;
  let west: ClusterKeys;
  let fleet: FleetUnderTest;
  const key = newFleetKey();

  beforeEach(async () => {
    hub = await ClusterKeys.start(1, systemClock());
    west = await ClusterKeys.start(2, systemClock());
    fleet = await FleetUnderTest.start({ key, keys: hub.keys });
  });
  afterEach(() => fleet.stop());

  const join = (): Promise<TestWorker> =>
    fleet.join({ clusterId: 'west', serve, keys: west.copies });
  const isTold = (apiKey: string, what: string): Promise<void> =>
    eventually(() => west.told(apiKey) === what, `the key is ${what} at west`);

  it('are valid on a worker with its own pepper, and invalid once revoked', async () => {
    await join();
    const { record, apiKey } = await hub.mint();
    const other = await hub.mint();
    expect(west.told(apiKey)).to.equal('INVALID_API_KEY');
    await hub.promote(record);
    await fleet.links.keysSettled();
    expect(west.told(apiKey)).to.equal('good');
    expect(west.told(other.apiKey)).to.equal('INVALID_API_KEY');
    const copy = west.apiKeys.find(record.keyId)!;
    expect(copy).to.include({ team: 'blue', user: 'ada', namespace: 'here-blue', global: true });

    await hub.apiKeys.remove(hub.apiKeys.find(record.keyId)!);
    await fleet.links.keysSettled();
    expect(west.told(apiKey)).to.equal('INVALID_API_KEY');
    expect(west.store.records.size).to.equal(0);
  });

  it('that the manager failed to revoke stay valid on every worker', async () => {
    await join();
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    await fleet.links.keysSettled();
    hub.store.remove = () => Promise.reject(new Error('the disk is full'));
    const standing = hub.apiKeys.find(record.keyId)!;
    expect(await rejection(hub.apiKeys.remove(standing))).to.match(/disk is full/);
    await fleet.links.keysSettled();
    expect([hub.told(apiKey), west.told(apiKey)]).to.deep.equal(['good', 'good']);

    hub.store.remove = () => Promise.reject(new OutcomeUnknown('the store went away'));
    await rejection(hub.apiKeys.remove(standing));
    await fleet.links.keysSettled();
    const refused = ['INVALID_API_KEY', 'INVALID_API_KEY'];
    expect([hub.told(apiKey), west.told(apiKey)]).to.deep.equal(refused);
  });

  it('of a manager at none of the addresses are gone, even if two addresses lead to one manager', async () => {
    const former = await ClusterKeys.start(3, systemClock());
    const { record, apiKey } = await former.mint();
    await former.promote(record);
    const visit = west.copies.begin('former');
    const key = former.keys.find(record.keyId)!;
    await visit.take({ keys: [key], gone: [], now: systemClock().now() });
    visit.end();
    await west.restart(2);
    const others = [`ws://localhost:${fleet.port}`];
    await fleet.join({ clusterId: 'west', serve, keys: west.copies, others });
    await isTold(apiKey, 'INVALID_API_KEY');
    await eventually(() => west.store.records.size === 0, 'its copy is gone');
  });

  it('are gone on a worker that disconnects its managers, until it accepts them again', async () => {
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    const own = await west.mint();
    const { links, folder } = await join();
    await isTold(apiKey, 'good');
    links.stop();
    west.copies.cutOff();
    expect(west.told(apiKey)).to.equal('INVALID_API_KEY');
    await eventually(() => west.store.records.size === 1, 'its copy is gone');
    expect(west.told(own.apiKey)).to.equal('good');
    fleet.worker({ clusterId: 'west', serve, keys: west.copies, folder });
    await isTold(apiKey, 'good');
  });

  it('reach new workers, under another name if theirs is taken', async () => {
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    const own = await west.mint({ namespace: 'here-blue' });
    await join();
    expect(west.told(apiKey)).to.equal('good');
    expect(west.apiKeys.find(record.keyId)?.shortName).to.match(/^k1-[0-9a-f]{8}$/);
    expect(west.told(own.apiKey)).to.equal('good');
  });

  it("appear neither as the secret nor as the manager's hash in a worker's files", async () => {
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    await join();
    const kept = JSON.stringify([...west.store.records.values()]);
    expect(kept).to.include(record.keyId);
    expect(kept).not.to.include(record.hash);
    expect(kept).not.to.include(hub.keys.find(record.keyId)!.verifier);
    expect(kept).not.to.include(apiKey.split('_')[2]!.slice(0, 12));
    expect(JSON.stringify([...hub.store.records.values()])).not.to.include(
      hub.keys.find(record.keyId)!.verifier,
    );
  });

  it("revoked during a worker's absence are refused before its link is ready", async () => {
    const worker = await join();
    const minted = await hub.mint();
    await hub.promote(minted.record);
    await isTold(minted.apiKey, 'good');
    worker.links.stop();
    await eventually(() => !fleet.links.find('west'), 'the link is cut');
    await hub.apiKeys.remove(hub.apiKeys.find(minted.record.keyId)!);
    expect(west.told(minted.apiKey)).to.equal('good'); // it goes on alone

    let told: string | undefined;
    const { begin } = west.copies;
    west.copies.begin = (manager) => {
      const visit = begin.call(west.copies, manager);
      return {
        ...visit,
        take: (change) => {
          const taken = visit.take(change);
          told = west.told(minted.apiKey);
          return taken;
        },
      };
    };
    const { remove } = west.store;
    let goOn: () => void = () => undefined;
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    let isHeld = false;
    west.store.remove = async (record) => {
      isHeld = true;
      await mayGoOn;
      await remove.call(west.store, record);
    };
    fleet.worker({ clusterId: 'west', serve, folder: worker.folder, keys: west.copies });
    await eventually(() => isHeld, 'it heard what is revoked');
    await fleet.join({ clusterId: 'east', serve }); // what takes as long as another link
    expect(fleet.links.find('west')).to.equal(undefined);
    goOn();
    await fleet.linked('west');
    expect(told).to.equal('UNAVAILABLE'); // while the manager is about to say it
    expect(west.told(minted.apiKey)).to.equal('INVALID_API_KEY');
  });

  it('stay valid if a returning manager cannot report which keys are valid', async () => {
    const worker = await join();
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    await isTold(apiKey, 'good');
    worker.links.stop();
    await eventually(() => !fleet.links.find('west'), 'the link is cut');
    let isAsked = false;
    hub.keys.list = () => {
      isAsked = true;
      return new Promise(() => undefined); // its store hangs
    };
    fleet.worker({ clusterId: 'west', serve, folder: worker.folder, keys: west.copies });
    await eventually(() => isAsked, 'the manager proved to be there');
    expect(west.told(apiKey)).to.equal('good');
  });

  it('revoked in the meantime are refused over an open link, even after a restart, while the store keeps them', async () => {
    await fleet.stop();
    const clock = new TestClock();
    hub = await ClusterKeys.start(1, clock);
    west = await ClusterKeys.start(2, clock);
    fleet = await FleetUnderTest.start({ clock, key, keys: hub.keys });
    const { links, folder } = await join();
    const { record, apiKey } = await hub.mint();
    const other = await hub.mint();
    await hub.promote(record);
    await isTold(apiKey, 'good');
    links.stop();
    await eventually(() => !fleet.links.find('west'), 'the link is cut');
    await hub.apiKeys.remove(hub.apiKeys.find(record.keyId)!);
    await hub.promote(other.record);
    const { remove } = west.store;
    let tries = 0;
    west.store.remove = async () => {
      tries += 1;
      throw new Error('the disk is full');
    };
    let worker: TestWorker | undefined;
    for (const before of ['good', 'UNAVAILABLE']) {
      worker?.links.stop();
      await eventually(() => !fleet.links.find('west'), 'there is no link');
      if (worker) await west.restart();
      expect(west.told(apiKey)).to.equal(before);
      worker = fleet.worker({ clusterId: 'west', serve, folder, keys: west.copies });
      await fleet.linked('west');
      for (let again = 0; again < 2; again += 1) {
        expect([west.told(apiKey), west.told(other.apiKey)]).to.deep.equal([
          'INVALID_API_KEY',
          'good',
        ]);
        const triedBefore = tries;
        await turns(); // until the next try is due
        clock.advance(5_000);
        await eventually(() => tries > triedBefore, 'it is tried again');
      }
      expect([worker.told, fleet.links.find('west') !== undefined]).to.deep.equal([[], true]);
    }
    const line = 'promoted-key-not-removed';
    expect(west.warned).to.deep.equal([line, line]); // once for each start
    west.store.remove = remove;
    await turns();
    clock.advance(5_000);
    await eventually(() => west.store.records.size === 1, 'it is gone');
    expect([west.told(apiKey), west.told(other.apiKey)]).to.deep.equal(['INVALID_API_KEY', 'good']);
  });

  it('are suspended after a start, until the manager was heard or is known to be unreachable', async () => {
    const clock = new TestClock(Date.now());
    west = await ClusterKeys.start(2, clock);
    const worker = await join();
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    await isTold(apiKey, 'good');
    worker.links.stop();
    await west.restart();
    expect(west.told(apiKey)).to.equal('UNAVAILABLE');
    clock.advance(3_000);
    expect(west.told(apiKey)).to.equal('good'); // nobody could be heard
    await west.restart(0);
    expect(west.told(apiKey)).to.equal('INVALID_API_KEY'); // the manager was cut off
    expect(west.store.records.size).to.equal(0);
  });

  for (const ahead of [HOUR_MS, -HOUR_MS])
    it(`expire by the manager's clock, on a worker whose clock is ${ahead} ms ahead`, async () => {
      await fleet.stop();
      const clock = new TestClock();
      hub = await ClusterKeys.start(1, clock);
      fleet = await FleetUnderTest.start({ clock, key, keys: hub.keys });
      west = await ClusterKeys.start(2, {
        now: () => clock.now() + ahead,
        at: (time, ring) => clock.at(time - ahead, ring),
      });
      await join();
      const long = await hub.mint({ lifetimeMs: HOUR_MS / 2 });
      const short = await hub.mint({ lifetimeMs: 4_000 });
      for (const { record } of [long, short]) await hub.promote(record);
      await isTold(long.apiKey, 'good');
      await isTold(short.apiKey, 'good');
      clock.advance(4_000);
      expect(west.told(short.apiKey)).to.equal('INVALID_API_KEY');
      await eventually(() => west.store.records.size === 1, 'its copy is gone');
      expect(west.told(long.apiKey)).to.equal('good');
    });

  it('are gone from a removed worker, at once or once it is back', async () => {
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    const worker = await join();
    expect(west.told(apiKey)).to.equal('good');
    await fleet.registry.remove('west');
    await fleet.links.dismiss('west');
    expect(fleet.links.find('west')).to.equal(undefined);
    expect(west.told(apiKey)).to.equal('INVALID_API_KEY');
    expect(west.store.records.size).to.equal(0);
    await eventually(() => worker.told.length > 0, 'it is told');
    expect(worker.told[0]).to.include('was removed');

    worker.links.stop(); // it would dial again, and end the copies of the daemon that comes after it
    await west.restart();
    const again = await join();
    await isTold(apiKey, 'good');
    again.links.stop();
    await eventually(() => !fleet.links.find('west'), 'the link is cut');
    await fleet.registry.remove('west');
    fleet.worker({ clusterId: 'west', serve, folder: again.folder, keys: west.copies });
    await isTold(apiKey, 'INVALID_API_KEY');
  });

  it('cannot be promoted again, even if another replica has just done so', async () => {
    const { record } = await hub.mint();
    await hub.promote(record);
    expect(await rejection(hub.keys.promote(record))).to.include({ code: 'ALREADY_GLOBAL' });
  });

  it('from another pepper cause a warning for the operator of the manager', async () => {
    const { record } = await hub.mint();
    await hub.promote(record);
    expect(hub.keys.warning).to.equal(undefined);
    hub.pepper.fill(9);
    await hub.restart();
    expect(hub.keys.warning).to.match(/: 1; .*another pepper/);
    await hub.apiKeys.remove(hub.apiKeys.find(record.keyId)!);
    expect(hub.keys.warning).to.equal(undefined);
  });

  it('that a worker stored under another pepper are renewed, with a warning for both operators', async () => {
    const worker = await join();
    const keys = [await hub.mint(), await hub.mint()];
    for (const { record } of keys) await hub.promote(record);
    await fleet.links.keysSettled();
    const remade = () => fleet.links.list()[0]?.links.map(({ keysRemade }) => keysRemade);
    expect(remade()).to.deep.equal([0]);
    worker.links.stop();
    west.pepper.fill(9);
    await west.restart();
    const { clusterId, folder } = { clusterId: 'west', folder: worker.folder };
    const again = fleet.worker({ clusterId, folder, serve, keys: west.copies });
    await eventually(() => remade()?.join() === '2', 'the manager shows it');
    for (const { apiKey } of keys) expect(west.told(apiKey)).to.equal('good');
    expect(west.warned.filter((event) => event === 'promoted-keys-stored-again')).to.have.length(1);

    again.links.stop();
    await eventually(() => remade()?.length === 0, 'the link is cut');
    fleet.worker({ clusterId, folder, serve, keys: west.copies });
    await eventually(() => remade()?.join() === '0', 'it is linked by the same pepper');
    expect(west.warned.filter((event) => event === 'promoted-keys-stored-again')).to.have.length(1);
  });

  it('are refused if their role was raised in the store by hand, or if they are too old', async () => {
    const { record } = await hub.mint();
    const { verifier: _verifier, ...old } = record;
    for (const each of [{ ...record, role: 'admin' as const }, old])
      expect(await rejection(hub.keys.promote(each))).to.include({ code: 'CONFLICT' });
  });
});

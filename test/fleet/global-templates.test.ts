import { expect } from 'chai';
import type { Duplex } from 'node:stream';
import {
  MOST_GLOBAL_TEMPLATES,
  type CopyReport,
  type GlobalTemplate,
} from '../../src/contracts/fleet/global-templates.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { FleetUnderTest, type TestWorker } from './a-fleet.ts';
import { aDocument, ClusterTemplates } from './a-templated-cluster.ts';

const serve = (connection: Duplex): void => void connection.destroy();
const GLOBAL = { syncSource: 'global' } as const;

describe('global templates', () => {
  let hub: ClusterTemplates;
  let west: ClusterTemplates;
  let westClock: TestClock;
  let fleet: FleetUnderTest;
  let atHub: ReturnType<ClusterTemplates['operations']>;
  let atWest: ReturnType<ClusterTemplates['operations']>;

  beforeEach(async () => {
    westClock = new TestClock();
    hub = await ClusterTemplates.start(systemClock(), 0);
    west = await ClusterTemplates.start(westClock);
    // time stands still there: no answer is late
    fleet = await FleetUnderTest.start({ clock: new TestClock(), templates: hub.globals });
    atHub = hub.operations(() => fleet.links);
    atWest = west.operations();
  });
  afterEach(async () => {
    west.copies.stop();
    await fleet.stop();
  });

  const join = (): Promise<TestWorker> =>
    fleet.join({ clusterId: 'west', serve, templates: west.copies });
  const back = async ({ folder }: TestWorker): Promise<TestWorker> => {
    const worker = fleet.worker({ clusterId: 'west', serve, templates: west.copies, folder });
    await fleet.linked('west');
    return worker;
  };
  const away = async ({ links }: TestWorker): Promise<void> => {
    links.stop();
    await eventually(() => !fleet.links.find('west'), 'the link is cut');
  };
  const shows = (shown: readonly string[]): Promise<void> =>
    eventually(
      () => JSON.stringify(west.shown()) === JSON.stringify(shown),
      `west shows ${shown.join('; ')}`,
    );
  const report = async (name = 't'): Promise<CopyReport | undefined> =>
    fleet.links.report('west', hub.get(name)?.globalId ?? '');

  it('exist on each worker once the manager has answered, version for version', async () => {
    await join();
    const { record } = await atHub.create(aDocument('t'), GLOBAL);
    await atHub.create(aDocument('own'));
    expect(west.shown()).to.deep.equal(['t 1 1 ']);
    await atHub.update('t', { description: '2' });
    await atHub.update('t', { description: '2' }); // says what is there already
    await atHub.update('t', { document: aDocument('t', '3') });
    expect(west.shown()).to.deep.equal(['t 3 3 2,1']);
    expect(west.get('t')).to.deep.include({ createdAt: record.createdAt });
    expect(west.get('t')?.earlier).to.deep.equal(hub.get('t')?.earlier);
    expect(await report()).to.deep.equal({ state: 'Synced', version: '3', pools: [] });
  });

  it('reach new workers, and workers that missed three versions', async () => {
    await atHub.create(aDocument('t'), GLOBAL);
    const worker = await join();
    await shows(['t 1 1 ']);
    await away(worker);
    for (const description of ['2', '3', '4']) await atHub.update('t', { description });
    await atHub.create(aDocument('u'), GLOBAL);
    expect(west.shown()).to.deep.equal(['t 1 1 ']); // and goes on with it
    await west.restart();
    await back(worker);
    await shows(['t 4 4 3,2,1', 'u 1 1 ']);
  });

  it('belong to a worker that disconnects its managers, until it accepts them again', async () => {
    await atHub.create(aDocument('t'), GLOBAL);
    const worker = await join();
    await shows(['t 1 1 ']);
    await away(worker);
    west.copies.cutOff();
    await eventually(() => west.get('t')?.managedBy === '', 'it is its own');
    await atHub.update('t', { description: '2' });
    await back(worker);
    await shows(['t 2 2 1']);
    expect(await report()).to.include({ state: 'Synced', version: '2' });
  });

  it('follow their manager again once the link is accepted again', async () => {
    const told = async () => await hub.globals.list();
    const visit = west.copies.begin('a manager');
    const whole = async (): Promise<void> => {
      await visit.take({ templates: await told(), gone: [], whole: 'end' });
      await visit.caughtUp(new Set((await told()).map(({ globalId }) => globalId)));
    };
    const { record } = await atHub.create(aDocument('t'), GLOBAL);
    await whole();
    await visit.take({ templates: [], gone: [record.globalId ?? ''], whole: undefined });
    expect(west.shown()).to.deep.equal([]);
    await whole(); // it was restored from a backup
    await atHub.update('t', { description: '2' });
    await visit.take({ templates: await told(), gone: [], whole: undefined });

    expect(west.shown()).to.deep.equal(['t 2 2 1']);
  });

  it('can become global, and local again, by a change without a new version', async () => {
    await join();
    await atHub.create(aDocument('t'));
    await atHub.update('t', { description: '2' });
    await atHub.update('t', GLOBAL);
    expect(west.shown()).to.deep.equal(['t 2 2 1']);
    await atHub.update('t', { syncSource: '' });
    expect(west.shown()).to.deep.equal([]);
    expect(hub.shown()).to.deep.equal(['t 2 2 1']);
  });

  it('can be changed and deleted on the manager only', async () => {
    await join();
    await atHub.create(aDocument('t'), GLOBAL);
    for (const refused of [
      atWest.update('t', { description: 'mine' }),
      atWest.update('t', { syncSource: '' }),
      atWest.delete('t'),
    ])
      expect(await rejection(refused))
        .to.include({ code: 'CONFLICT' })
        .and.match(/at the manager/);
    expect(await rejection(atWest.create(aDocument('t')))).to.include({ code: 'ALREADY_EXISTS' });
    expect(await rejection(atWest.create(aDocument('u'), GLOBAL))).to.deep.include({
      code: 'FEATURE_DISABLED',
      detail: { field: 'syncSource' },
    });
    expect(west.shown()).to.deep.equal(['t 1 1 ']);
  });

  it("are restored if a worker's store was changed by hand", async () => {
    await join();
    await atHub.create(aDocument('t'), GLOBAL);
    await west.store.update({ ...west.get('t')!, document: aDocument('t', 'by hand') });
    await shows(['t 1 1 ']);
    await west.store.remove(west.get('t')!);
    await shows(['t 1 1 ']);
  });

  it("do not replace a cluster's own template, and appear once it is gone", async () => {
    await atWest.create(aDocument('t', 'mine'));
    await join();
    await atHub.create(aDocument('t'), GLOBAL);
    await atHub.update('t', { description: '2' });
    expect(west.shown()).to.deep.equal(['t 1 mine ']);
    expect(await report()).to.include({ state: 'Conflict' });
    await atWest.update('t', { description: 'still mine' });
    await atWest.delete('t');
    await shows(['t 2 2 1']);
    await eventually(async () => (await report())?.state === 'Synced', 'it is told');
  });

  it("cannot be deleted while a worker's pool uses them", async () => {
    await join();
    await atHub.create(aDocument('t'), GLOBAL);
    west.usedBy('t');
    const refused = await rejection(atHub.delete('t'));
    expect(refused).to.include({ code: 'TEMPLATE_IN_USE' });
    expect(JSON.stringify(refused)).to.include('"name":"user"');
    west.usedBy();
    await atHub.delete('t');
    expect([hub.shown(), west.shown()]).to.deep.equal([[], []]);
  });

  it("deleted during a worker's absence stay there until no pool uses them", async () => {
    await atHub.create(aDocument('t'), GLOBAL);
    const globalId = hub.get('t')!.globalId!;
    const worker = await join();
    await shows(['t 1 1 ']);
    west.usedBy('t');
    await away(worker);
    await atHub.delete('t');
    await west.restart();
    await back(worker);
    await eventually(
      async () => (await fleet.links.report('west', globalId))?.message !== undefined,
      'it is about to go',
    );
    expect(west.shown()).to.deep.equal(['t 1 1 ']);
    expect(await rejection(atWest.update('t', { description: 'x' }))).to.include({
      code: 'CONFLICT',
    });
    west.usedBy();
    await eventually(() => {
      westClock.advance(5_000);
      return west.shown().length === 0;
    }, 'it is gone');
  });

  it('recreated after a deletion start with version 1 everywhere', async () => {
    await atHub.create(aDocument('t'), GLOBAL);
    const worker = await join();
    await atHub.update('t', { description: '2' });
    west.usedBy('t');
    await away(worker);
    await atHub.delete('t');
    await atHub.create(aDocument('t', 'new'), GLOBAL);
    await back(worker);
    await shows(['t 1 new ']);
  });

  it('that a cluster cannot run or understand are reported, without a broken link', async () => {
    await join();
    await atHub.create(aDocument('t'), GLOBAL);
    const way = fleet.links.find('west');
    const later = { ...hub.get('t')!, version: '2', document: aDocument('t', '2', 'elsewhere') };
    await hub.store.update(later);
    await fleet.links.templatesSettled();
    expect(await report()).to.deep.include({
      state: 'Refused',
      version: '1',
      message: 'spec.containers[0].image: there is none here',
    });
    const document = aDocument('t', '3');
    Object.assign(document.spec, { fromALaterVersion: true });
    await hub.store.update({ ...hub.get('t')!, version: '3', document });
    await fleet.links.templatesSettled();
    expect((await report())?.message).to.include('fromALaterVersion');
    expect(west.shown()).to.deep.equal(['t 1 1 ']);
    await atHub.update('t', { document: aDocument('t', '4') });
    expect(west.get('t')).to.include({ version: '4' });
    expect(fleet.links.find('west')?.linkId).to.equal(way?.linkId);
  });

  it('that the store refused are stored as soon as it works', async () => {
    await join();
    const { create } = west.store;
    west.store.create = () => Promise.reject(new Error('the disk is full'));
    await atHub.create(aDocument('t'), GLOBAL);
    expect(await report()).to.include({ state: 'Pending' });
    west.store.create = create;
    westClock.advance(5_000);
    await shows(['t 1 1 ']);
  });

  it('can be deleted while the store keeps another, and created while it fails to delete one', async () => {
    await join();
    for (const name of ['kept', 'later']) await atHub.create(aDocument(name), GLOBAL);
    const { create, remove } = west.store;
    west.store.remove = (copy) =>
      copy.name === 'kept'
        ? Promise.reject(new Error('not this one'))
        : remove.call(west.store, copy);
    west.store.create = () => Promise.reject(new Error('the disk is full'));
    for (const name of ['kept', 'later']) await atHub.delete(name);
    await atHub.create(aDocument('new'), GLOBAL);
    await shows(['kept 1 1 ']);
    west.store.create = create;
    await eventually(() => {
      westClock.advance(5_000);
      return west.get('new') !== undefined;
    }, 'it comes');
  });

  it('belong to a removed cluster, and to the manager again once the cluster is back', async () => {
    await atHub.create(aDocument('t'), GLOBAL);
    await atHub.create(aDocument('u'), GLOBAL);
    await join();
    await shows(['t 1 1 ', 'u 1 1 ']);
    await fleet.registry.remove('west');
    await fleet.links.dismiss('west');
    await eventually(() => west.get('u')?.managedBy === '', 'they are its own');
    await atWest.update('u', { description: 'mine' });
    await atHub.update('t', { description: '2' });
    expect(west.shown()).to.deep.equal(['t 1 1 ', 'u 2 mine 1']);
    await west.restart();
    await join();
    await shows(['t 2 2 1', 'u 2 mine 1']); // what was changed here since is its own
    await eventually(async () => (await report('u'))?.state === 'Conflict', 'it is told');
    await west.restart(0); // the manager was cut off
    await eventually(() => west.get('t')?.managedBy === '', 'it is its own');
    await atWest.delete('t');
  });

  it('are limited in number', async () => {
    for (let n = 0; n < MOST_GLOBAL_TEMPLATES; n += 1)
      await atHub.create(aDocument(`t${n}`), GLOBAL);
    await atHub.create(aDocument('own'));
    for (const refused of [atHub.create(aDocument('x'), GLOBAL), atHub.update('own', GLOBAL)])
      expect(await rejection(refused)).to.include({ code: 'CONFLICT' });
    await join();
    await eventually(() => west.store.records.size === MOST_GLOBAL_TEMPLATES, 'all');
  });
});

describe('the global templates reported by replicas of a manager', () => {
  const told = (version: string, globalId = 'an-id-of-template'): GlobalTemplate => ({
    ...{ globalId, name: 't', version, createdAt: 1, document: aDocument('t', version) },
  });
  let west: ClusterTemplates;

  beforeEach(async () => {
    west = await ClusterTemplates.start(new TestClock(), 2);
  });
  afterEach(() => west.copies.stop());

  /** A link on which all was told. */
  const link = async (templates: readonly GlobalTemplate[], manager = 'hub') => {
    west.copies.leadsTo(`ws://${manager}`, manager);
    const visit = west.copies.begin(manager);
    await visit.take({ templates, gone: [], whole: 'end' });
    await visit.caughtUp(new Set(templates.map(({ globalId }) => globalId)));
    return visit;
  };

  it('never return to an earlier version, unless the manager itself did', async () => {
    const one = await link([told('2')]);
    const other = await link([told('2')]);
    await one.take({ templates: [told('3')], gone: [] });
    await other.take({ templates: [told('2')], gone: [] }); // late
    expect(west.shown()).to.deep.equal(['t 3 3 ']);
    await west.restart(2);
    await west.copies.begin('hub').take({ templates: [told('2')], gone: [] });
    expect(west.shown()).to.deep.equal(['t 3 3 ']);
    await link([told('2')]); // as after a restore
    expect(west.shown()).to.deep.equal(['t 2 2 ']);
  });

  it('neither restore a deleted template nor delete a new one', async () => {
    const one = await link([told('7', 'the-former-one')]);
    const other = await link([told('7', 'the-former-one')]);
    await one.take({ templates: [], gone: ['the-former-one'] });
    await other.take({ templates: [told('8', 'the-former-one')], gone: [] });
    expect(west.shown()).to.deep.equal([]);
    await one.take({ templates: [told('1', 'the-later-one')], gone: [] });
    await other.take({ templates: [], gone: ['the-former-one'] });
    expect(west.shown()).to.deep.equal(['t 1 1 ']);
  });

  it('delete nothing by a late message of an ended link', async () => {
    const ended = await link([told('1')]);
    const late = ended.caughtUp(new Set()); // it waits for its turn
    ended.end();
    await late;
    await ended.caughtUp(new Set());
    expect(west.shown()).to.deep.equal(['t 1 1 ']);
    await west.copies.begin('hub').caughtUp(new Set()); // of one that stands
    expect(west.shown()).to.deep.equal([]);
  });

  it('are applied by two replicas of a worker without conflict', async () => {
    const { update } = west.store;
    const visit = await link([told('1')]);
    let others = 0;
    west.store.update = async (record) => {
      if ((others += 1) === 1) await update.call(west.store, record); // the other replica's
      return await update.call(west.store, record);
    };
    await visit.take({ templates: [told('2')], gone: [] });
    await eventually(() => west.shown()[0] === 't 2 2 ', 'it is there');
  });

  it('do not replace the copy of another manager', async () => {
    await link([told('1')]);
    await link([{ ...told('5'), globalId: 'of-another-hub' }], 'another');
    expect(west.shown()).to.deep.equal(['t 1 1 ']);
    expect((await west.copies.report('another', 'of-another-hub')).state).to.equal('Conflict');
  });
});

import { expect } from 'chai';
import type { PromotedKey } from '../../src/contracts/fleet/promoted-keys.ts';
import { RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { turns } from '../support/harness/turns.ts';
import { ALONE_MS, ClusterKeys } from './a-promoting-fleet.ts';

describe('copies of promoted keys', () => {
  let clock: TestClock;
  let hub: ClusterKeys;
  let west: ClusterKeys;

  beforeEach(async () => {
    clock = new TestClock();
    hub = await ClusterKeys.start(1, clock);
    west = await ClusterKeys.start(2, clock);
  });

  /** A promoted key, and a link that told of it. */
  const told = async (manager = 'm') => {
    const { record, apiKey } = await hub.mint({ lifetimeMs: 10 * ALONE_MS });
    await hub.promote(record);
    const key = hub.keys.find(record.keyId)!;
    west.copies.leadsTo('ws://a', manager);
    const visit = west.copies.begin(manager);
    await visit.take({ keys: [key], gone: [], now: clock.now() });
    await visit.caughtUp(new Set([key.keyId]));
    return { key, apiKey, visit };
  };
  const failing = async <T>(operation: 'create' | 'remove', work: () => Promise<T>): Promise<T> => {
    const fails = (): Promise<never> => Promise.reject(new Error('the disk is full'));
    const { create, remove } = west.store;
    Object.assign(west.store, { [operation]: fails });
    try {
      return await work();
    } finally {
      Object.assign(west.store, { create, remove });
    }
  };

  it('are no longer written once the daemon stops, even those already received', async () => {
    const { record } = await hub.mint();
    await hub.promote(record);
    const key = hub.keys.find(record.keyId)!;
    const taken = west.copies.begin('m').take({ keys: [key], gone: [], now: clock.now() });
    west.copies.stop();
    await taken;
    expect(await west.store.list()).to.deep.equal([]);
  });

  it('that the store refused are stored as soon as it works', async () => {
    const { apiKey } = await failing('create', () => told());
    expect(west.told(apiKey)).to.equal('INVALID_API_KEY');
    clock.advance(5_000);
    await eventually(() => west.told(apiKey) === 'good', 'it is kept');
  });

  it('that the store refused are stored even if the complete report takes longer', async () => {
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    const key = hub.keys.find(record.keyId)!;
    const visit = west.copies.begin('m');
    await failing('create', () => visit.take({ keys: [key], gone: [], now: clock.now() }));
    clock.advance(5_000); // it is not known yet whether it is revoked
    await turns();
    expect(west.store.records.size).to.equal(0);
    await visit.caughtUp(new Set([key.keyId]));
    clock.advance(5_000);
    await eventually(() => west.told(apiKey) === 'good', 'it is kept');
  });

  it('that the store refused are dropped once no link reports them', async () => {
    const { key, visit } = await failing('create', () => told());
    visit.end();
    clock.advance(5_000);
    await turns();
    expect(west.store.records.size).to.equal(0);
    await west.copies.begin('m').caughtUp(new Set()); // the key ended meanwhile
    clock.advance(5_000);
    await turns();
    expect([west.store.records.size, west.apiKeys.find(key.keyId)]).to.deep.equal([0, undefined]);
  });

  it('that the store refused for long are all stored within 5 s of its return, with few retries', async () => {
    const { create } = west.store;
    let writes = 0;
    west.store.create = () => {
      writes += 1;
      return Promise.reject(new Error('the disk is full'));
    };
    const keys: (PromotedKey & { readonly apiKey: string })[] = [];
    for (let n = 0; n < 40; n += 1) {
      const { record, apiKey } = await hub.mint();
      await hub.promote(record);
      keys.push({ ...hub.keys.find(record.keyId)!, apiKey });
    }
    const visit = west.copies.begin('m');
    await visit.take({ keys, gone: [], now: clock.now() });
    await visit.caughtUp(new Set(keys.map(({ keyId }) => keyId)));
    expect(writes).to.equal(40);
    writes = 0;
    for (let passed = 0; passed < 10; passed += 1) {
      for (let step = 0; step < 12; step += 1) {
        clock.advance(5_000);
        await turns();
      }
      expect(writes, 'in a minute').to.be.within(12, 12 * 16);
      writes = 0;
    }
    expect(west.warned).to.have.lengthOf(40);
    west.store.create = create;
    clock.advance(5_000);
    await eventually(
      () => keys.every(({ apiKey }) => west.told(apiKey) === 'good'),
      'they are kept',
    );
  });

  it('are refused once they are revoked, even if the store cannot delete them', async () => {
    const { key, apiKey, visit } = await told();
    const word = { keys: [], gone: [key.keyId], now: clock.now() };
    await failing('remove', async () => {
      await visit.take(word);
      expect(west.told(apiKey)).to.equal('INVALID_API_KEY');
      await visit.take({ keys: [key], gone: [], now: clock.now() }); // late, of another replica
      visit.end();
      clock.advance(60_000);
      await turns();
      expect(west.told(apiKey)).to.equal('INVALID_API_KEY');
    });
    expect([west.store.records.size, west.warned]).to.deep.equal([1, ['promoted-key-not-removed']]);
    clock.advance(5_000);
    await eventually(() => west.store.records.size === 0, 'it is forgotten');
  });

  it('that expired, and that the store kept until the next report, stay valid', async () => {
    const { key, apiKey, visit } = await told();
    visit.end();
    await failing('remove', () => told('another'));
    expect([west.told(apiKey), west.store.records.size]).to.deep.equal(['INVALID_API_KEY', 2]);
    west.copies.leadsTo('ws://a', 'm');
    const back = west.copies.begin('m');
    await back.take({ keys: [key], gone: [], now: clock.now() });
    await back.caughtUp(new Set([key.keyId]));
    back.end(); // nobody says any more that it is good
    clock.advance(5_000);
    await turns();
    expect(west.told(apiKey)).to.equal('good');
  });

  it('of a manager that the cluster has left are gone once the new one was heard', async () => {
    const { apiKey, visit } = await told('old');
    visit.end();
    await west.restart();
    expect(west.told(apiKey)).to.equal('UNAVAILABLE');
    const other = await told('new');
    expect([west.told(apiKey), west.told(other.apiKey)]).to.deep.equal(['INVALID_API_KEY', 'good']);
    expect(west.store.records.size).to.equal(1);
  });

  it('stay while an address has not answered, and while any address reaches their manager', async () => {
    await west.restart(2);
    const [one, two] = [await told('one'), await told('two')]; // at the same address, later
    expect(west.store.records.size).to.equal(2);
    west.copies.leadsTo('ws://b', 'one');
    await one.visit.caughtUp(new Set([one.key.keyId]));
    expect([west.told(one.apiKey), west.told(two.apiKey)]).to.deep.equal(['good', 'good']);
    west.copies.leadsTo('ws://a', 'one');
    await one.visit.caughtUp(new Set([one.key.keyId]));
    expect(west.told(two.apiKey)).to.equal('good'); // its link stands
    two.visit.end();
    await one.visit.caughtUp(new Set([one.key.keyId]));
    expect([west.told(one.apiKey), west.told(two.apiKey)]).to.deep.equal([
      'good',
      'INVALID_API_KEY',
    ]);
  });

  it('that ended since an address led to another manager are valid again once reported', async () => {
    const { key, apiKey, visit } = await told();
    visit.end();
    await told('another');
    expect([west.told(apiKey), west.store.records.size]).to.deep.equal(['INVALID_API_KEY', 1]);
    west.copies.leadsTo('ws://a', 'm');
    const back = west.copies.begin('m');
    await back.take({ keys: [key], gone: [], now: clock.now() });
    await back.caughtUp(new Set([key.keyId]));
    expect(west.told(apiKey)).to.equal('good');
  });

  it('of one manager are independent of reports by another', async () => {
    await west.restart(2);
    const one = await told('one');
    const two = west.copies.begin('two');
    await two.take({ keys: [], gone: [one.key.keyId], now: clock.now() });
    expect(west.told(one.apiKey)).to.equal('good');

    const later = await failing('create', () => told('one'));
    await two.take({ keys: [], gone: [later.key.keyId], now: clock.now() });
    await two.caughtUp(new Set());
    clock.advance(5_000); // it is tried again all the same
    await eventually(() => west.told(later.apiKey) === 'good', 'it is kept');
  });

  it('are valid for a limited time without their manager, and again once it is heard', async () => {
    const { key, apiKey, visit } = await told();
    const own = await west.mint({ lifetimeMs: 10 * ALONE_MS });
    let ends = 0;
    west.apiKeys.followEnd(key.keyId, () => (ends += 1));
    west.apiKeys.followEnd(own.record.keyId, () => (ends += 10));
    visit.end(); // cut off from here on
    clock.advance(ALONE_MS / 2);
    await west.restart(); // which gives them no more time
    west.apiKeys.followEnd(key.keyId, () => (ends += 100));
    clock.advance(ALONE_MS / 2 - 1);
    expect([west.told(apiKey), ends]).to.deep.equal(['good', 0]);
    expect(west.copies.warning).to.match(/will be refused from/);

    clock.advance(1);
    expect([west.told(apiKey), west.told(own.apiKey), ends]).to.deep.equal([
      'UNAVAILABLE',
      'good',
      101,
    ]);
    expect(west.copies.warning).to.match(/are refused until their manager confirms them again/);

    const back = west.copies.begin('m');
    await back.take({ keys: [key], gone: [], now: clock.now() });
    await back.caughtUp(new Set([key.keyId]));
    expect([west.told(apiKey), west.copies.warning]).to.deep.equal(['good', undefined]);
    back.end();
    clock.advance(ALONE_MS - 1);
    expect(west.told(apiKey)).to.equal('good');
  });

  it('are confirmed while a link is open, by few writes, even if the store fails at times', async () => {
    const { key, apiKey, visit } = await told();
    const { update } = west.store;
    let [writes, ends] = [0, 0];
    west.apiKeys.followEnd(key.keyId, () => (ends += 1));
    west.store.update = async (...of) => {
      writes += 1;
      if (writes % 2 === 1) throw new Error('the disk is full');
      return await update.apply(west.store, of);
    };
    for (let passed = 0; passed < 3 * ALONE_MS; passed += 60_000) {
      clock.advance(60_000);
      await new Promise((resolve) => void setImmediate(resolve));
    }
    expect([west.told(apiKey), ends]).to.deep.equal(['good', 0]);
    expect(writes).to.be.within(12, 26);
    visit.end();
    clock.advance((ALONE_MS * 3) / 4 - 120_000);
    expect(west.told(apiKey)).to.equal('good');
    clock.advance(ALONE_MS / 4 + 120_000);
    expect(west.told(apiKey)).to.equal('UNAVAILABLE');
  });

  it("end the work under them when they end, but not the work under the cluster's own keys", async () => {
    const { key, visit } = await told();
    const own = await west.mint();
    let ended = false;
    west.apiKeys.followEnd(key.keyId, () => (ended = true));
    await visit.take({ keys: [], gone: [key.keyId, own.record.keyId], now: clock.now() });
    expect([ended, west.told(own.apiKey)]).to.deep.equal([true, 'good']);
  });

  it('do not replace a key of the cluster with the same id', async () => {
    const own = await west.mint();
    const { record } = await hub.mint();
    await hub.promote(record);
    const key = { ...hub.keys.find(record.keyId)!, keyId: own.record.keyId };
    await west.copies.begin('m').take({ keys: [key], gone: [], now: clock.now() });
    expect(west.told(own.apiKey)).to.equal('good');
  });

  it('can be reported by two replicas at once', async () => {
    const { key, apiKey, visit } = await told();
    const { store } = west;
    const { update } = store;
    store.update = async () => {
      throw new RecordConflict('another replica did');
    };
    await visit.take({ keys: [{ ...key, description: 'x' }], gone: [], now: clock.now() });
    store.update = update;
    expect(west.told(apiKey)).to.equal('good');
  });
});

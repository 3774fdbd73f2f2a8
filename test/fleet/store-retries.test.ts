import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PromotedKey } from '../../src/contracts/fleet/promoted-keys.ts';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { StoreRetries } from '../../src/fleet/replication/store-retries.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { turns } from '../support/harness/turns.ts';
import { ClusterKeys } from './a-promoting-fleet.ts';

const HOUR_S = 3_600;

const named = (what: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${what} ${at}`);

describe('retries of failed writes', () => {
  let clock: TestClock;
  let retries: StoreRetries;
  let isDown: boolean;
  let never: Set<string>;
  let taken: string[];
  let asked: number;
  let work: Promise<void>;

  beforeEach(() => {
    clock = new TestClock();
    work = Promise.resolve();
    retries = new StoreRetries({ clock, inTurn: (task) => (work = work.then(task)) });
    [isDown, never, taken, asked] = [false, new Set(), [], 0];
  });
  afterEach(() => retries.stop());

  const put = (names: readonly string[]): void => {
    for (const name of names)
      retries.put(name, async () => {
        asked += 1;
        if (isDown || never.has(name)) throw new Error('it does not take it');
        taken.push(name);
        return 'taken';
      });
  };
  const neverTaken = (what: string, count: number): readonly string[] => {
    const names = named(what, count);
    for (const name of names) never.add(name);
    return names;
  };
  const pass = async (seconds: number): Promise<void> => {
    for (let passed = 0; passed < seconds; passed += 5) {
      clock.advance(5_000);
      await turns(passed + 5 < seconds ? 4 : 100);
    }
  };

  it('succeed within 5 s, even if many failing ones wait longer', async () => {
    put(neverTaken('bad', 160));
    await pass(600);
    isDown = true;
    put(['good']);
    await pass(30);
    [isDown, asked] = [false, 0];
    await pass(5);
    expect(taken).to.deep.equal(['good']);
    expect(asked, 'and it is asked little for the others').to.be.at.most(16 + 16);
  });

  it("all succeed within 5 s of the store's return, among others that always fail", async () => {
    put(neverTaken('bad', 160));
    await pass(HOUR_S);
    isDown = true;
    const good = named('good', 4);
    put(good);
    await pass(HOUR_S);
    isDown = false;
    await pass(5);
    expect(taken).to.have.members(good);
  });

  it('all follow a success at once, including those that failed more often', async () => {
    isDown = true;
    const [old, young] = [named('old', 16), named('young', 16)];
    put(old);
    await pass(HOUR_S);
    put(young);
    await pass(600);
    put(['new']);
    isDown = false;
    await pass(5);
    expect(taken).to.have.members(['new', ...young, ...old]);
  });

  it('happen within 5 s, next to any others', async () => {
    put(neverTaken('bad', 1));
    clock.advance(4_000);
    put(['good']);
    clock.advance(1_000);
    await turns();
    expect(taken).to.deep.equal(['good']);
  });

  it('happen after earlier ones', async () => {
    let done = (): void => undefined;
    work = new Promise((resolve) => (done = resolve));
    put(['one']);
    await pass(5);
    expect(taken).to.deep.equal([]);
    done();
    await turns();
    expect(taken).to.deep.equal(['one']);
  });

  it('follow the success of one that failed as often, at any position', async () => {
    isDown = true;
    put(['first', ...neverTaken('bad', 160), 'last']);
    isDown = false;
    await pass(5);
    expect(taken).to.deep.equal(['first', 'last']);
  });

  it('happen less and less often', async () => {
    put(neverTaken('bad', 160));
    await pass(HOUR_S);
    asked = 0;
    await pass(300);
    expect(asked, 'in 5 min: each once, and one at each look').to.be.within(160, 160 + 60);
  });

  it('are not delayed for long by others that failed more often', async () => {
    isDown = true;
    put(['good']);
    await pass(HOUR_S);
    put(neverTaken('bad', 640));
    isDown = false;
    await pass(300 + (640 / 8) * 5);
    expect(taken).to.deep.equal(['good']);
  });

  it('can be too early, and are repeated the next time', async () => {
    let isEarly = true;
    put(neverTaken('bad', 40));
    retries.put('one', async () => {
      if (isEarly) return 'too early';
      taken.push('one');
      return 'taken';
    });
    await pass(HOUR_S);
    isEarly = false;
    await pass(5);
    expect([taken, retries.has('one')]).to.deep.equal([['one'], false]);
  });
});

describe('promoted keys refused by a store', () => {
  let clock: TestClock;
  let west: ClusterKeys;
  let keys: (PromotedKey & { readonly apiKey: string })[];
  let records: Omit<ApiKeyRecord, 'revision'>[];
  let create: ClusterKeys['store']['create'];

  const told = async (count: number) => {
    const hub = await ClusterKeys.start(1, clock);
    for (let n = 0; n < count; n += 1) {
      const { record, apiKey } = await hub.mint();
      await hub.promote(record);
      keys.push({ ...hub.keys.find(record.keyId)!, apiKey });
    }
    const visit = west.copies.begin('m');
    await visit.take({ keys, gone: [], now: clock.now() });
    await visit.caughtUp(new Set(keys.map(({ keyId }) => keyId)));
    return visit;
  };

  beforeEach(async () => {
    clock = new TestClock();
    west = await ClusterKeys.start(2, clock);
    [keys, records] = [[], []];
    create = west.store.create.bind(west.store);
    west.store.create = (record) => {
      records.push(record);
      return Promise.reject(new Error('the disk is full'));
    };
  });

  it('are retried 16 at a time, even if another replica has stored some of them', async () => {
    await told(100);
    for (const record of records.splice(0).slice(0, 40)) await create(record);
    clock.advance(5_000);
    await turns(100);
    expect(records).to.have.lengthOf(16);
  });

  it('do not delay the revocation of another', async () => {
    const visit = await told(200);
    records = [];
    let before: number | undefined;
    west.store.create = async (record) => {
      const made = await create(record);
      if (records.push(record) === 1)
        void nextTurn()
          .then(() => visit.take({ keys: [], gone: [keys[199]!.keyId], now: clock.now() }))
          .then(() => (before = records.length));
      return made;
    };
    clock.advance(5_000);
    const [last, ...others] = [...keys].reverse();
    await eventually(
      () => others.every(({ apiKey }) => west.told(apiKey) === 'good'),
      'they are kept',
    );
    expect(before).to.be.within(1, 48);
    expect(west.told(last!.apiKey)).to.equal('INVALID_API_KEY');
    expect(records).to.have.lengthOf(199);
  });
});

import { expect } from 'chai';
import { Refusal } from '../../src/model/refusals.ts';
import { quotaDefaults, QuotaLimits } from '../../src/actors/pool/commands/quota-limits.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { MemoryQuotas } from '../support/fakes/memory-quotas.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const DEFAULTS = {
  sandboxes: 10,
  pools: 5,
  replicas: 20,
  cpu: Number.POSITIVE_INFINITY,
  memory: Number.POSITIVE_INFINITY,
};
const BOB = { ...ALICE, user: 'bob' };

describe('user limits', () => {
  let store: MemoryQuotas;
  let clock: TestClock;
  const aMirror = (): QuotaLimits => new QuotaLimits({ quotas: store, clock, defaults: DEFAULTS });
  beforeEach(() => {
    store = new MemoryQuotas();
    clock = new TestClock();
  });

  it('are the configured ones, except for those set for the user', async () => {
    const limits = aMirror();
    await limits.start();

    expect(await limits.set(ALICE, { sandboxes: 3 })).to.deep.equal({ ...DEFAULTS, sandboxes: 3 });

    expect([limits.of(ALICE), limits.of(BOB)]).to.deep.equal([
      { ...DEFAULTS, sandboxes: 3 },
      DEFAULTS,
    ]);
  });

  it('keep fields that a change does not name', async () => {
    const limits = aMirror();
    await limits.start();
    await limits.set(ALICE, { sandboxes: 3 });
    await limits.set(ALICE, { pools: 0 });
    await limits.set(ALICE, { sandboxes: undefined });

    expect(limits.of(ALICE)).to.deep.equal({ ...DEFAULTS, sandboxes: 3, pools: 0 });
    expect(store.records.size).to.equal(1);
  });

  it('on cpu and memory exist only while they are set', async () => {
    const limits = new QuotaLimits({
      quotas: store,
      clock,
      defaults: quotaDefaults({ sandboxes: 10, pools: 5, replicas: 20, memory: '2Gi' }),
    });
    await limits.start();
    expect(limits.of(ALICE)).to.include({ cpu: Number.POSITIVE_INFINITY, memory: 2 * 2 ** 20 });

    expect(await limits.set(ALICE, { cpu: 1_500, memory: 7 })).to.include({
      cpu: 1_500,
      memory: 7,
    });
    await limits.set(ALICE, { cpu: 'none', memory: 'none' });

    expect(limits.of(ALICE)).to.include({ cpu: Number.POSITIVE_INFINITY, memory: 2 * 2 ** 20 });
    expect((await store.list()).map(({ limits: own }) => own)).to.deep.equal([{}]);
  });

  it('follow every writer, from the start on', async () => {
    const [one, two] = [aMirror(), aMirror()];
    await two.set(BOB, { replicas: 1 });
    await one.start();
    await two.set(ALICE, { sandboxes: 3 });

    expect([one.of(ALICE).sandboxes, one.of(BOB).replicas]).to.deep.equal([3, 1]);
    await store.remove((await store.list()).find(({ user }) => user === ALICE.user)!);
    expect(one.of(ALICE)).to.deep.equal(DEFAULTS);
  });

  it('lose no change if two are made at once', async () => {
    const [one, two] = [aMirror(), aMirror()];
    await Promise.all([
      one.set(ALICE, { sandboxes: 3 }),
      two.set(ALICE, { pools: 1 }),
      two.set(ALICE, { replicas: 2 }),
    ]);

    expect((await store.list()).map(({ limits }) => limits)).to.deep.equal([
      { sandboxes: 3, pools: 1, replicas: 2 },
    ]);
  });

  it('refuse a change, without a write, if other writers always come first', async () => {
    const limits = aMirror();
    await limits.set(ALICE, { sandboxes: 3 });
    const stale = (await store.list())[0];
    store.get = async () => ({ ...stale!, revision: 'old' });

    expect(await rejection(limits.set(ALICE, { sandboxes: 4 })))
      .to.be.instanceOf(Refusal)
      .with.property('code', 'UNAVAILABLE');
    expect((await store.list())[0]).to.deep.equal(stale);
  });
});

import { expect } from 'chai';
import {
  RECONCILE_EVERY_MS,
  ReservationReconciler,
  UNCONFIRMED_MS,
} from '../../src/actors/sandbox/reservation-reconciler.ts';
import type { Reservation, UsagePart } from '../../src/contracts/coordination/quotas.ts';
import { QUOTA_RESOURCES, type QuotaResource } from '../../src/model/pools/quota.ts';
import { shardOf } from '../../src/model/shards.ts';
import { tenantKey, type Tenant } from '../../src/model/tenant.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const BOB: Tenant = { ...ALICE, user: 'bob' };

describe('reconciling reservations', () => {
  const aReconciler = (
    options: {
      readonly leads?: (shard: number) => boolean;
      readonly recorded?: Record<string, number>;
      readonly unmade?: (poolUid: string) => Promise<void>;
      readonly parts?: (key: string) => UsagePart[];
      readonly shown?: Record<string, Record<string, number>>;
    } = {},
  ) => {
    const clock = new TestClock();
    const open = new Map<string, Reservation[]>();
    const settled: string[] = [];
    const asked: string[] = [];
    const key = (tenant: Tenant, resource: QuotaResource): string => `${tenant.user} ${resource}`;
    const reconciler = new ReservationReconciler({
      clock,
      log: quietLog,
      leads: options.leads ?? (() => true),
      tenants: () => [ALICE, BOB],
      quotas: {
        unreconciled: async (tenant, resource, age) => {
          asked.push(`${key(tenant, resource)} ${age}`);
          return (open.get(key(tenant, resource)) ?? []).slice(0, 100);
        },
        parts: async (tenant, resource) => options.parts?.(key(tenant, resource)) ?? [],
        reconcile: async (tenant, resource, parts) => {
          settled.push(
            ...parts.map(
              ({ name, version, amount }) =>
                `${key(tenant, resource)} ${name} ${version} ${amount}`,
            ),
          );
          open.set(
            key(tenant, resource),
            (open.get(key(tenant, resource)) ?? []).filter(
              ({ name }) => !parts.some((part) => part.name === name),
            ),
          );
        },
      },
      recorded: async (_tenant, _resource, name) => {
        const amount = options.recorded?.[name];
        if (amount === undefined) throw new Error('out of reach');
        return { amount, revision: '7' };
      },
      shown: (tenant, resource) =>
        new Map(Object.entries(options.shown?.[key(tenant, resource)] ?? {})),
      unmade: async (_tenant, poolUid) => {
        await options.unmade?.(poolUid);
      },
    });
    reconciler.start();
    const round = async (): Promise<void> => {
      clock.advance(RECONCILE_EVERY_MS);
      await eventually(() => clock.waiting === 1, 'the next round is waited for');
    };
    return { reconciler, clock, open, settled, asked, round };
  };

  it("sets each name to its record's amount, and to nothing without a record", async () => {
    const { open, settled, asked, round } = aReconciler({
      recorded: { claimed: 1, left: 0, pool: 7 },
    });
    open.set('alice sandboxes', [
      { name: 'claimed', version: '1' },
      { name: 'left', version: '2' },
    ]);
    open.set('bob replicas', [{ name: 'pool', version: '3' }]);

    await round();

    expect(settled).to.deep.equal([
      'alice sandboxes claimed 1 1',
      'alice sandboxes left 2 0',
      'bob replicas pool 3 7',
    ]);
    expect(asked).to.include(`alice pools ${UNCONFIRMED_MS}`);
  });

  it('skips what cannot be decided now, and checks again', async () => {
    const recorded: Record<string, number> = { b: 1 };
    const { open, settled, round } = aReconciler({ recorded });
    open.set('alice sandboxes', [
      { name: 'a', version: '1' },
      { name: 'b', version: '2' },
    ]);
    await round();
    expect(settled).to.deep.equal(['alice sandboxes b 2 1']);
    recorded['a'] = 0;

    await round();

    expect(settled.slice(1)).to.deep.equal(['alice sandboxes a 1 0']);
  });

  it('removes the data of an uncreated pool before its reservation', async () => {
    const unmade: string[] = [];
    let outOfReach = true;
    const { open, settled, round } = aReconciler({
      recorded: { made: 1, cut: 0, claim: 0 },
      unmade: async (poolUid) => {
        unmade.push(poolUid);
        if (outOfReach) throw new Error('out of reach');
      },
    });
    open.set('alice pools', [
      { name: 'made', version: '1' },
      { name: 'cut', version: '2' },
    ]);
    open.set('alice sandboxes', [{ name: 'claim', version: '3' }]);
    await round();
    expect([unmade, settled]).to.deep.equal([
      ['cut'],
      ['alice sandboxes claim 3 0', 'alice pools made 1 1'],
    ]);
    outOfReach = false;

    await round();

    expect([unmade, settled.slice(2)]).to.deep.equal([['cut', 'cut'], ['alice pools cut 2 0']]);
  });

  it('covers all reservations', async () => {
    const names = Array.from({ length: 250 }, (_, n) => `n${n}`);
    const { open, settled, round } = aReconciler({
      recorded: Object.fromEntries(names.map((name) => [name, 1])),
    });
    open.set(
      'alice sandboxes',
      names.map((name) => ({ name, version: '1' })),
    );

    await round();

    expect(settled).to.have.length(250);
  });

  it("is the task of the shard's leader and of the replica that reserved", async () => {
    const led = shardOf(tenantKey(BOB));
    expect(shardOf(tenantKey(ALICE))).to.not.equal(led);
    const { reconciler, asked, round } = aReconciler({ leads: (shard) => shard === led });
    await round();
    expect(asked.every((each) => each.startsWith('bob'))).to.equal(true);

    reconciler.note(ALICE);
    // by then what was reserved before the note is old enough
    const rounds = UNCONFIRMED_MS / RECONCILE_EVERY_MS + 1;
    for (let n = 0; n < rounds; n += 1) await round();
    const after = asked.filter((each) => each.startsWith('alice')).length;
    await round();

    expect([after, asked.filter((each) => each.startsWith('alice')).length]).to.deep.equal([
      QUOTA_RESOURCES.length * rounds,
      QUOTA_RESOURCES.length * rounds,
    ]);
  });

  describe('a reservation that differs from the mirror', () => {
    const part = (name: string, amount: number, version = '1', isReserved = false): UsagePart => ({
      name,
      amount,
      version,
      isReserved,
    });

    it('is set by its record after two differences', async () => {
      const { settled, round } = aReconciler({
        recorded: { gone: 0, resized: 7, unknown: 3 },
        shown: { 'alice replicas': { resized: 7, unknown: 3, agreed: 2, empty: 0 } },
        parts: (key) =>
          key === 'alice replicas'
            ? [
                part('gone', 4),
                part('resized', 5),
                part('agreed', 2),
                part('reserved', 9, '1', true),
              ]
            : [],
      });
      await round();
      expect(settled).to.deep.equal([]);

      await round();

      expect(settled).to.deep.equal([
        'alice replicas gone 1 0',
        'alice replicas resized 1 7',
        'alice replicas unknown  3',
      ]);
    });

    it('is skipped if it changed in between', async () => {
      let version = 0;
      const { settled, round } = aReconciler({
        recorded: { gone: 0 },
        parts: (key) => (key === 'bob pools' ? [part('gone', 1, String(++version))] : []),
      });
      for (let n = 0; n < 4; n += 1) await round();

      expect(settled).to.deep.equal([]);
    });

    it('is searched for once a minute', async () => {
      let looks = 0;
      const { round } = aReconciler({
        parts: (key) => {
          if (key === 'bob pools') looks += 1;
          return [];
        },
      });
      for (let n = 0; n < 13; n += 1) await round();

      expect(looks).to.equal(3);
    });
  });

  it('stops', async () => {
    const { reconciler, clock } = aReconciler();
    await reconciler.stop();
    expect(clock.waiting).to.equal(0);
  });
});

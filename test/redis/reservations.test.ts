import { expect } from 'chai';
import * as fc from 'fast-check';
import { SerializedWriter } from '../../src/actors/runtime/serialized-writer.ts';
import { UNCONFIRMED_MS } from '../../src/actors/sandbox/reservation-reconciler.ts';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { LeaseLost, OutcomeUnknown, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import {
  amountsOfPool,
  SIZED_RESOURCES,
  type QuotaResource,
  type SizedResource,
} from '../../src/model/pools/quota.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { Resizing } from '../../src/actors/sandbox/commands/reservations.ts';
import {
  known,
  twoRedisCoordinations,
  WrittenUsage,
} from '../support/harness/a-redis-coordination.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { limitsOf } from '../support/fakes/memory-quotas.ts';
import { MemoryPools } from '../support/fakes/memory-records.ts';
import { reconciled } from '../support/harness/reconciled.ts';
import { advanceRedis } from '../support/harness/redis-clock.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { runs } from '../support/harness/runs.ts';

const isSized = (resource: QuotaResource): resource is SizedResource =>
  SIZED_RESOURCES.some((each) => each === resource);

describe('reservations in Redis', () => {
  const redis = onRedis();
  let usage: WrittenUsage;
  let one: Coordination;
  let other: Coordination;
  let close: () => Promise<void>;

  beforeEach(async () => {
    usage = new WrittenUsage();
    ({
      one,
      other,
      stop: close,
    } = await twoRedisCoordinations(redis().settings, { usage, rebuildWaitMs: 0 }));
    await known(() => one.used(ALICE));
  });
  afterEach(() => close());

  const admit = (
    at: Coordination,
    instance: string,
    part: { readonly from?: string; readonly attempt?: string; readonly limit?: number } = {},
  ) => at.admitClaim({ pool: { uid: 'p1', owner: ALICE }, instance, limit: 1, idle: 1, ...part });
  const used = async (): Promise<number> => (await one.used(ALICE)).sandboxes;
  const settle = async (amount: number): Promise<void> => {
    await one.reconcile(
      ALICE,
      'sandboxes',
      (await one.unreconciled(ALICE, 'sandboxes', 0)).map((part) => ({ ...part, amount })),
    );
  };

  it('count a running sandbox even after another replica failed to reserve it', async () => {
    await admit(one, 'x');
    await settle(1);

    expect(await admit(other, 'x')).to.equal('admitted');
    await other.withdraw(ALICE, 'sandboxes', { name: 'x' });

    expect(await used()).to.equal(1);
    expect(await admit(one, 'y')).to.equal('full');
  });

  it('count a rebuilt sandbox even after another replica failed to reserve it', async () => {
    await redis().client.flushall();
    usage.partsOf(ALICE, 'sandboxes').set('x', 1);
    await known(() => one.used(ALICE));

    await admit(other, 'x');
    await admit(other, 'y', { from: 'x' });

    expect(await used()).to.equal(1);
  });

  it('survive a late withdrawal of an earlier attempt on the same replica', async () => {
    await admit(one, 'x', { attempt: 'first' });
    await admit(one, 'x', { attempt: 'second' });

    await one.withdraw(ALICE, 'sandboxes', { name: 'x', attempt: 'first' });
    expect(await one.stillReserved(ALICE, 'sandboxes', { name: 'x', attempt: 'first' })).to.equal(
      false,
    );
    expect(await one.stillReserved(ALICE, 'sandboxes', { name: 'x' })).to.equal(true);
    expect(await used()).to.equal(1);

    await one.withdraw(ALICE, 'sandboxes', { name: 'x', attempt: 'second' });
    expect(await used()).to.equal(0);
  });

  it('equal the last write, whoever confirms first', async () => {
    const replicas = async (): Promise<number> => (await one.used(ALICE)).replicas;
    await one.reserve(ALICE, 'replicas', { name: 'p', amount: 10, limit: 10, attempt: 'up' });
    await other.confirm(ALICE, 'replicas', { name: 'p', amount: 3, revision: '10' });
    expect(await replicas()).to.equal(10); // its write may yet land
    await one.confirm(ALICE, 'replicas', { name: 'p', amount: 10, revision: '9', attempt: 'up' });

    expect(await replicas()).to.equal(3);
    expect(await one.unreconciled(ALICE, 'replicas', 0)).to.deep.equal([]);
    await one.confirm(ALICE, 'replicas', { name: 'never', amount: 5, revision: '1' });
    expect(await replicas()).to.equal(3);
  });

  describe('of pools that two replicas resize at once', () => {
    const LIMIT = 10;
    const CPU_LIMIT = 20_000;

    /**
     * Two replicas over one store of pools, whose steps come in the order that `schedule` gives
     * them; writes and calls fail as `faults` say.
     */
    const aWorld = async (
      schedule: <T>(work: () => Promise<T>) => Promise<T>,
      faults: { readonly write: () => string; readonly call: () => boolean },
    ) => {
      const truth = new MemoryPools();
      const clock = new TestClock(Date.now());
      const sizes = { most: 0, cpu: 0 };
      const cpu = (): number =>
        [...truth.records.values()].reduce((sum, record) => sum + amountsOfPool(record).cpu, 0);
      const total = (): number =>
        [...truth.records.values()].reduce((sum, { replicas }) => sum + replicas, 0);
      const replicaOf = (shared: Coordination) => {
        const mirror = new Map<string, PoolRecord>();
        const call = <T>(work: () => Promise<T>): Promise<T> =>
          schedule(async () => {
            if (faults.call()) throw new Refusal('UNAVAILABLE', 'told to be away');
            return await work();
          });
        const coordination: Coordination = {
          ...shared,
          reserve: (...of) => call(() => shared.reserve(...of)),
          withdraw: (...of) => call(() => shared.withdraw(...of)),
          confirm: (...of) => call(() => shared.confirm(...of)),
        };
        const update = (record: PoolRecord, permitted?: () => boolean): Promise<PoolRecord> =>
          schedule(async () => {
            const fault = faults.write();
            if (fault === 'late') throw new LeaseLost();
            if (fault === 'conflict') throw new RecordConflict();
            if (fault === 'lost') throw new OutcomeUnknown();
            const written = await truth.update(record, permitted);
            sizes.most = Math.max(sizes.most, total());
            sizes.cpu = Math.max(sizes.cpu, cpu());
            if (fault === 'landed') throw new OutcomeUnknown();
            return written;
          });
        const turns = new SerializedWriter<PoolRecord>({
          current: (uid) => mirror.get(uid),
          storeKeyOf: ({ owner, name }) => `${owner.namespace}/${name}`,
          // What is read or written is reported to who mirrors it.
          records: {
            update: async (...of) => {
              const record = await update(...of);
              mirror.set(record.uid, record);
              return record;
            },
            get: async (key) => {
              const record = await schedule(() => truth.get(key));
              if (record) mirror.set(record.uid, record);
              return record;
            },
          },
        });
        const resize = async (uid: string, replicas: number, cpuCores = 1): Promise<void> => {
          const pool = mirror.get(uid);
          if (!pool) return;
          const resizing = new Resizing(
            { coordination, clock, quotaLimits: limitsOf({ replicas: LIMIT, cpu: CPU_LIMIT }) },
            pool,
          );
          try {
            const record = await turns.change(
              uid,
              async (current) => {
                const next = {
                  ...current,
                  replicas,
                  definition: {
                    ...current.definition,
                    containers: current.definition.containers.map((container) => ({
                      ...container,
                      cpuCores,
                    })),
                  },
                };
                await resizing.cover(current, next);
                return next;
              },
              resizing.permitted,
            );
            if (record) await resizing.landed(record);
          } catch (error) {
            await resizing.failed(error);
          }
        };
        const see = (): void => {
          mirror.clear();
          for (const record of truth.records.values()) mirror.set(record.uid, record);
        };
        return { resize, see };
      };
      return { truth, sizes, total, cpu, replicas: [replicaOf(one), replicaOf(other)] as const };
    };

    /** As whoever leads does once writes that were under way have landed. */
    const settleByRecords = async (truth: MemoryPools): Promise<void> => {
      await advanceRedis([redis().client], UNCONFIRMED_MS + 1);
      const amountOf = (resource: QuotaResource, name: string): number => {
        const record = truth.records.get(name);
        return record && isSized(resource) ? amountsOfPool(record)[resource] : 0;
      };
      await reconciled({
        quotas: one,
        shown: (_tenant, resource) =>
          new Map(
            isSized(resource)
              ? [...truth.records.values()].map(({ uid }) => [uid, amountOf(resource, uid)])
              : [],
          ),
        recorded: async (_tenant, resource, name) => ({
          amount: amountOf(resource, name),
          revision: truth.records.get(name)?.revision ?? '',
        }),
      });
    };

    it('never exceed the quota if growing and shrinking one pool cross', async () => {
      const {
        truth,
        total,
        replicas: [a, b],
      } = await aWorld((work) => work(), { write: () => '', call: () => false });
      const p = await truth.create(aPool({ name: 'p', replicas: 5 }));
      const q = await truth.create(aPool({ name: 'q', replicas: 0 }));
      await one.reconcile(ALICE, 'replicas', [
        { name: p.uid, version: '', amount: 5, revision: p.revision },
      ]);
      a.see();
      b.see();

      await Promise.all([a.resize(p.uid, 10), b.resize(p.uid, 0)]); // whichever stands
      b.see();
      await b.resize(q.uid, 10);

      expect(total()).to.be.at.most(LIMIT);
      expect((await one.used(ALICE)).replicas).to.equal(total());
    });

    it('never exceed the quota, and match the records after calm', async function () {
      const step = fc.record({
        at: fc.nat(1),
        pool: fc.nat(2),
        replicas: fc.constantFrom(0, 1, 3, 5, 8, 10),
        cores: fc.constantFrom(0.5, 1, 2, 4),
        sees: fc.boolean(),
      });
      const fault = fc.constantFrom('', '', '', '', '', 'late', 'conflict', 'lost', 'landed');
      await fc.assert(
        fc.asyncProperty(
          fc.scheduler(),
          fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { maxLength: 8 }),
          fc.infiniteStream(fault),
          fc.infiniteStream(fc.nat(9)),
          async (scheduler, rounds, writes, calls) => {
            await redis().client.flushall();
            await known(() => one.used(ALICE));
            const next = <T>(stream: Iterator<T>, otherwise: T): T => {
              const { value, done } = stream.next();
              return done === true ? otherwise : (value as T);
            };
            const { truth, sizes, cpu, replicas } = await aWorld(
              async (work) => await scheduler.schedule(Promise.resolve()).then(work),
              { write: () => next(writes, ''), call: () => next(calls, 1) === 0 },
            );
            const pools = await Promise.all(
              ['p', 'q', 'r'].map((name) => truth.create(aPool({ name, replicas: 0 }))),
            );
            for (const replica of replicas) replica.see();
            for (const round of rounds) {
              const work = round.map(async ({ at, pool, replicas: size, cores, sees }) => {
                const replica = at === 0 ? replicas[0] : replicas[1];
                if (sees) replica.see();
                await replica.resize(pools[pool]?.uid ?? '', size, cores);
              });
              await scheduler.waitFor(Promise.all(work));
            }
            expect(sizes.most).to.be.at.most(LIMIT);
            expect(sizes.cpu).to.be.at.most(CPU_LIMIT);
            const used = async (): Promise<number> => (await one.used(ALICE)).replicas;
            const total = [...truth.records.values()].reduce(
              (sum, { replicas: size }) => sum + size,
              0,
            );
            expect(await used()).to.be.at.least(total);
            await settleByRecords(truth);
            expect(await used()).to.equal(total);
            expect((await one.used(ALICE)).cpu).to.equal(cpu());
            expect(await one.unreconciled(ALICE, 'replicas', 0)).to.deep.equal([]);
          },
        ),
        { numRuns: runs(150) },
      );
    });
  });
});

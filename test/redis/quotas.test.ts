import { expect } from 'chai';
import * as fc from 'fast-check';
import type { ClaimEntry } from '../../src/contracts/coordination/claims.ts';
import type { Coordination } from '../../src/contracts/coordination.ts';
import type { UsageRecords } from '../../src/contracts/usage-records.ts';
import { Refusal } from '../../src/model/refusals.ts';
import {
  aRedisCoordination,
  known,
  twoRedisCoordinations,
  WrittenUsage,
} from '../support/harness/a-redis-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { reconciled } from '../support/harness/reconciled.ts';
import { rejection } from '../support/harness/rejection.ts';
import { runs } from '../support/harness/runs.ts';

describe('usage in Redis', () => {
  const redis = onRedis();
  let usage: WrittenUsage;
  let one: Coordination;
  let other: Coordination;
  let close: () => Promise<void>;

  beforeEach(async () => {
    usage = new WrittenUsage();
    await open(0);
  });
  afterEach(() => close());

  const open = async (rebuildWaitMs: number): Promise<void> => {
    ({
      one,
      other,
      stop: close,
    } = await twoRedisCoordinations(redis().settings, { usage, rebuildWaitMs }));
  };

  const reserve = (at: Coordination, name: string, limit = 3) =>
    at.reserve(ALICE, 'sandboxes', { name, amount: 1, limit });
  const admit = (at: Coordination, entry: Pick<ClaimEntry, 'instance' | 'from' | 'request'>) =>
    at.admitClaim({ pool: { uid: 'p1', owner: ALICE }, limit: 1, idle: 1, looked: true, ...entry });
  const isKnown = (at: Coordination = one) =>
    known(() => at.reserve(ALICE, 'sandboxes', { name: 'nothing', amount: 0, limit: 0 }));
  const rejected = async (asked: Promise<unknown>): Promise<string> => {
    const error = await rejection(asked);
    return error instanceof Refusal ? error.code : String(error);
  };

  it('is unknown at first, and read from the records before any grant', async () => {
    usage.partsOf(ALICE, 'sandboxes').set('a', 1).set('b', 1);

    expect(await rejected(reserve(one, 'c'))).to.equal('UNAVAILABLE');
    await isKnown();

    expect([await reserve(one, 'c'), await reserve(one, 'd')]).to.deep.equal([true, false]);
    await one.release(ALICE, 'sandboxes', 'a');
    expect(await reserve(one, 'd')).to.equal(true);
  });

  it('is reported once it is known, with the reservations', async () => {
    usage.partsOf(ALICE, 'sandboxes').set('a', 1);
    usage.partsOf(ALICE, 'replicas').set('p', 5);

    expect(await rejected(one.used(ALICE))).to.equal('UNAVAILABLE');
    await known(() => other.used(ALICE));
    await reserve(other, 'b');

    expect(await one.used(ALICE)).to.deep.equal({
      sandboxes: 2,
      pools: 0,
      replicas: 5,
      cpu: 0,
      memory: 0,
    });
    await redis().client.flushall();
    expect(await rejected(one.used(ALICE))).to.equal('UNAVAILABLE');
  });

  it('is read in advance for an expected tenant', async () => {
    usage.partsOf(ALICE, 'sandboxes').set('a', 1);

    one.expectUse(ALICE);
    await eventually(
      async () => (await redis().client.keys('*:usage:sandboxes')).length > 0,
      'it is known',
    );

    expect(await reserve(other, 'b')).to.equal(true);
  });

  it('delays the first request of a new tenant', async () => {
    await close();
    await open(400);
    usage.partsOf(ALICE, 'sandboxes').set('a', 1);

    await one.whenKnown(ALICE);

    expect(await one.used(ALICE)).to.deep.equal({
      sandboxes: 1,
      pools: 0,
      replicas: 0,
      cpu: 0,
      memory: 0,
    });
  });

  it('does not delay requests while Redis is unavailable', async () => {
    await redis().kill();
    expect(await rejected(one.whenKnown(ALICE))).to.equal('UNAVAILABLE');
    await redis().restart();
    await eventually(() => one.describe().problems.length === 0, 'Redis answers');
  });

  it('delays requests for a bounded time', async () => {
    await close();
    usage.of = () => new Promise(() => undefined);
    await open(0);

    expect(await rejected(one.whenKnown(ALICE))).to.equal('UNAVAILABLE');
  });

  it('is unknown after a flush of Redis', async () => {
    await isKnown();
    await reserve(one, 'claimed');
    usage.partsOf(ALICE, 'sandboxes').set('claimed', 1);

    await redis().client.flushall();

    expect(await one.stillReserved(ALICE, 'sandboxes', { name: 'claimed' })).to.equal(false);
    expect(await rejected(reserve(one, 'x', 2))).to.equal('UNAVAILABLE');
    await isKnown();
    expect([await reserve(one, 'x', 2), await reserve(one, 'y', 2)]).to.deep.equal([true, false]);
  });

  it('is unknown after a restart of Redis, which may have lost the last writes', async () => {
    await isKnown();
    await reserve(one, 'claimed');
    usage.partsOf(ALICE, 'sandboxes').set('claimed', 1).set('lost', 1);

    await redis().kill();
    await redis().restart();
    await eventually(() => one.describe().problems.length === 0, 'Redis answers');

    expect(await rejected(reserve(one, 'x', 2))).to.equal('UNAVAILABLE');
    await isKnown();
    expect(await reserve(one, 'x', 2)).to.equal(false);
  });

  it('is read from the records only after pending writes have landed', async () => {
    await close();
    await open(1_000);
    const began = performance.now();
    // At once, that neither comes when the wait is over.
    const refused = [one, other].map((at) => rejected(reserve(at, 'a', 1)));
    expect(await Promise.all(refused)).to.deep.equal(['UNAVAILABLE', 'UNAVAILABLE']);
    usage.partsOf(ALICE, 'sandboxes').set('late', 1);
    await isKnown();

    expect(performance.now() - began).to.be.at.least(990);
    expect(await reserve(other, 'a', 1)).to.equal(false);
    expect(usage.reads).to.be.within(1, 2); // by one replica or both
  });

  it('is read again after a second flush', async () => {
    let reads = 0;
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const slow: UsageRecords = {
      tenants: () => [],
      of: async (tenants) => {
        reads += 1;
        const read = await usage.of(tenants);
        if (reads === 1) await held;
        return read;
      },
    };
    const third = await aRedisCoordination(redis().settings, {
      replica: 'replica-3',
      usage: slow,
      rebuildWaitMs: 0,
    });
    await rejected(reserve(third.coordination, 'a'));
    await eventually(() => reads === 1, 'it reads');

    await redis().client.flushall();
    usage.partsOf(ALICE, 'sandboxes').set('between', 1);
    go();
    await isKnown(third.coordination);

    expect(await reserve(third.coordination, 'b', 1)).to.equal(false);
    await third.stop();
  });

  it('does not count a release during the read of its record forever', async () => {
    usage.partsOf(ALICE, 'sandboxes').set('ending', 1).set('running', 1);
    // as if both had been read before the one was released, which has no effect before the end
    await isKnown();
    await redis().client.flushall();
    await one.release(ALICE, 'sandboxes', 'ending');
    await isKnown();

    await reconciled({
      quotas: other,
      shown: (_tenant, resource) => new Map(resource === 'sandboxes' ? [['running', 1]] : []),
      recorded: async (_tenant, _resource, name) => ({ amount: name === 'running' ? 1 : 0 }),
    });

    expect([await reserve(one, 'a', 2), await reserve(one, 'b', 2)]).to.deep.equal([true, false]);
  });

  it('keeps a reservation of one replica when another withdraws its own of the same name', async () => {
    await isKnown();
    expect([await reserve(one, 'a', 1), await reserve(other, 'a', 1)]).to.deep.equal([true, true]);

    await other.withdraw(ALICE, 'sandboxes', { name: 'a' });
    await other.withdraw(ALICE, 'sandboxes', { name: 'a' });

    expect(await other.stillReserved(ALICE, 'sandboxes', { name: 'a' })).to.equal(false);
    expect(await one.stillReserved(ALICE, 'sandboxes', { name: 'a' })).to.equal(true);
    expect(await reserve(other, 'b', 1)).to.equal(false);
    await one.withdraw(ALICE, 'sandboxes', { name: 'a' });
    expect(await reserve(other, 'b', 1)).to.equal(true);
  });

  it('reports unsettled names, and removes those without a record', async () => {
    await isKnown();
    await reserve(one, 'claimed');
    await reserve(one, 'left');
    await one.release(ALICE, 'sandboxes', 'nothing');

    const open = await other.unreconciled(ALICE, 'sandboxes', 0);
    expect(open.map(({ name }) => name).toSorted()).to.deep.equal(['claimed', 'left']);
    expect(await other.unreconciled(ALICE, 'sandboxes', 30_000)).to.deep.equal([]);
    await other.reconcile(
      ALICE,
      'sandboxes',
      open.map((one) => ({ ...one, amount: one.name === 'claimed' ? 1 : 0 })),
    );

    expect(await other.unreconciled(ALICE, 'sandboxes', 0)).to.deep.equal([]);
    await one.withdraw(ALICE, 'sandboxes', { name: 'claimed' }); // settled: nobody's any more
    expect([await reserve(one, 'b', 2), await reserve(one, 'c', 2)]).to.deep.equal([true, false]);
  });

  it('keeps a name that was reserved again since the report', async () => {
    await isKnown();
    await reserve(one, 'a', 1);
    const [named] = (await other.unreconciled(ALICE, 'sandboxes', 0)).filter(
      ({ name }) => name === 'a',
    );
    await reserve(other, 'a', 1);

    if (named) await one.reconcile(ALICE, 'sandboxes', [{ ...named, amount: 0 }]);

    expect(named).to.have.property('name', 'a');
    expect(await reserve(one, 'b', 1)).to.equal(false);
  });

  it('gives a repeated request the instance that its first attempt may have claimed', async () => {
    await isKnown();
    const mark = { key: 'k'.repeat(22), body: 'b'.repeat(22) };
    const owner = { tenant: ALICE, ttlMs: 60_000 };
    await one.openRequest(mark, owner);
    expect(await admit(one, { instance: 'a', request: mark })).to.equal('admitted');
    await one.giveUpRequest(mark, owner);
    await one.giveUpRequest(mark, owner);

    expect(await other.openRequest(mark, owner)).to.include({ kind: 'new', instance: 'a' });
    expect((await one.openRequest(mark, owner)).kind).to.equal('in-flight');
    await other.keepAnswer(mark, owner, 'the answer');
    expect(await one.openRequest(mark, owner)).to.deep.equal({
      kind: 'answered',
      answer: 'the answer',
    });
  });

  it('reserves nothing for a request that another replica has taken over', async () => {
    await isKnown();
    const mark = { key: 'k'.repeat(22), body: 'b'.repeat(22) };
    const owner = { tenant: ALICE, ttlMs: 60_000 };
    await one.openRequest(mark, owner);
    expect(await admit(one, { instance: 'a', request: mark })).to.equal('admitted');
    expect((await other.openRequest(mark, owner)).kind).to.equal('in-flight');
    expect(await one.confirmRequest(mark)).to.equal(true);

    const [key] = await redis().client.keys('*:request:*');
    // as if its replica had died, which would say again that it lives
    await redis().client.hset(key ?? '', 'until', '1', 'owner', 'died');

    expect(await other.openRequest(mark, owner)).to.include({ kind: 'new', instance: 'a' });
    expect(await one.confirmRequest(mark)).to.equal(false);
    expect(await other.confirmRequest(mark)).to.equal(true);
    expect(await rejected(admit(one, { instance: 'b', from: 'a', request: mark }))).to.equal(
      'UNAVAILABLE',
    );
    expect(await admit(other, { instance: 'c', request: mark })).to.equal('admitted');
    expect(await one.keepAnswer(mark, owner, 'too late')).to.equal(false);
    expect((await other.openRequest(mark, owner)).kind).to.equal('in-flight');
    expect(await other.keepAnswer(mark, owner, 'the answer')).to.equal(true);
    expect(await one.keepAnswer(mark, owner, 'too late')).to.equal(false);
    expect(await one.openRequest(mark, owner)).to.deep.equal({
      kind: 'answered',
      answer: 'the answer',
    });
  });

  it('never exceeds the changing limit, through any losses and rebuilds', async function () {
    const step = fc.oneof(
      ...(
        [
          ['claim', 6],
          ['end', 3],
          ['lose', 2],
          ['flush', 1],
          ['settle', 1],
        ] as const
      ).map(([kind, weight]) => ({
        weight,
        arbitrary: fc.record({ kind: fc.constant(kind), at: fc.nat(1), name: fc.nat(7) }),
      })),
    );
    const round = fc.record({
      limit: fc.constantFrom(3, 3, 1, 5),
      steps: fc.array(step, { minLength: 1, maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(round, { maxLength: 12 }), async (rounds) => {
        await redis().client.flushall();
        const records = usage.partsOf(ALICE, 'sandboxes');
        records.clear();
        const ended = new Set<string>();
        const taking = new Set<string>();
        let born = 0;
        let limit = 3;
        /** What there may be: the limit, or what there was when it was lowered. */
        let most = 3;
        const fresh = (n: number): string => {
          const name = `i${n}-${born}`;
          return ended.has(name) || records.has(name) ? `i${n}-${++born}` : name;
        };
        // A claim: reserved, checked again, written.
        const claim = async (at: Coordination, name: string): Promise<void> => {
          if (!(await reserve(at, name, limit).catch(() => false))) return;
          if (!(await at.stillReserved(ALICE, 'sandboxes', { name }))) return;
          if (records.has(name)) return await at.withdraw(ALICE, 'sandboxes', { name });
          records.set(name, 1);
          if (records.size > most) throw new Error(`${records.size} records`);
        };
        for (const { limit: next, steps: round } of rounds) {
          limit = next;
          most = Math.max(limit, records.size);
          await Promise.all(
            round.map(async ({ kind, at, name: n }) => {
              const who = at === 0 ? one : other;
              const [taken] = records.keys();
              if (kind === 'claim') {
                const name = fresh(n);
                // a replica takes an instance once at a time
                if (taking.has(`${at}/${name}`)) return;
                taking.add(`${at}/${name}`);
                await claim(who, name);
                taking.delete(`${at}/${name}`);
              } else if (kind === 'end' && taken !== undefined && !ended.has(taken)) {
                ended.add(taken);
                records.delete(taken);
                await who.release(ALICE, 'sandboxes', taken);
              } else if (kind === 'lose') await reserve(who, `lost-${n}`, limit).catch(() => false);
              else if (kind === 'settle') {
                const open = await who.unreconciled(ALICE, 'sandboxes', 0);
                if (round.length === 1)
                  await who.reconcile(
                    ALICE,
                    'sandboxes',
                    open.map((part) => ({ ...part, amount: records.has(part.name) ? 1 : 0 })),
                  );
              }
            }),
          );
          // Claims that were under way have landed before records are read, as the wait sees to.
          if (round.some(({ kind }) => kind === 'flush')) {
            await redis().client.flushall();
            await isKnown();
          }
        }
        expect(records.size).to.be.at.most(most);
        await isKnown();
        const free = Math.max(0, limit - records.size);
        const open = await one.unreconciled(ALICE, 'sandboxes', 0);
        await one.reconcile(
          ALICE,
          'sandboxes',
          open.map((part) => ({ ...part, amount: records.has(part.name) ? 1 : 0 })),
        );
        const more = await Promise.all(
          Array.from({ length: limit + 1 }, (_, n) =>
            reserve(n % 2 === 0 ? one : other, `more-${n}`, limit),
          ),
        );
        expect(more.filter(Boolean)).to.have.length(free);
      }),
      { numRuns: runs(60) },
    );
  });
});

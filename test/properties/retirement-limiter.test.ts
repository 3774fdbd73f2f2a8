import { expect } from 'chai';
import * as fc from 'fast-check';
import { RetirementLimiter } from '../../src/actors/sandbox/retirement-limiter.ts';
import { STEADY_MS } from '../../src/machines/sandbox/arithmetic.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { RefusingDriver } from '../support/fakes/refusing-driver.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { checkAsync } from './check.ts';
import { runs } from '../support/harness/runs.ts';

const REPLICAS = 12;
const WITHIN_MS = 60_000;
const HEALED_MS = 180_000;

const aNamespace = fc.record({
  pools: fc.integer({ min: 1, max: 6 }),
  refusal: fc.constantFrom(
    undefined,
    undefined,
    'deletes' as const,
    'all' as const,
    'silent' as const,
  ),
  wants: fc.constantFrom('trim' as const, 'rollout' as const, 'deletion' as const),
});
const namespaces = fc.array(aNamespace, { minLength: 2, maxLength: 6, size: 'max' });

/** Per minute and pool: 8, with their reads. */
const MOST_REFUSALS = 8 * 2 * (WITHIN_MS / 1_000);

/** By namespace and pool. */
const surpluses = fc.array(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 7 }), {
  minLength: 1,
  maxLength: 4,
});

describe('ends without a waiting caller', () => {
  it('all complete in any order of answers, and each wakes its pool once', async () => {
    await checkAsync(
      fc.asyncProperty(surpluses, fc.infiniteStream(fc.nat()), async (given, choices) => {
        const left = new Map(
          given.flatMap((pools, n) => pools.map((count, p) => [`${n}/${p}`, count])),
        );
        const underWay: { readonly uid: string; readonly id: string }[] = [];
        const goneOn: string[] = [];
        const limiter = new RetirementLimiter({
          clock: new TestClock(),
          goOn: (uid) => {
            if (goneOn.push(uid) <= left.size) endMore(uid);
          },
          goOnAt: () => undefined,
          namespaceOf: (uid) => uid.split('/')[0],
        });
        const endMore = (uid: string): void => {
          const count = left.get(uid) ?? 0;
          limiter.end(
            uid,
            (_, most) =>
              Array.from({ length: Math.min(most, count) }, (_, n) => `${uid}/${count - n}`),
            (id) => {
              left.set(uid, (left.get(uid) ?? 0) - 1);
              return underWay.push({ uid, id }) > 0;
            },
          );
        };
        for (const uid of left.keys()) endMore(uid);
        while (underWay.length > 0) {
          const [one] = underWay.splice((choices.next().value ?? 0) % underWay.length, 1);
          goneOn.length = 0;
          if (one) limiter.moved(one.uid, one.id, new Set(['endDurable']));
          await new Promise<void>((resolve) => {
            setImmediate(resolve);
          });
          expect(new Set(goneOn).size, 'each once').to.equal(goneOn.length);
        }
        expect([...left.values()].filter((count) => count > 0)).to.deep.equal([]);
      }),
      { numRuns: runs(100) },
    );
  });

  it('continue in namespaces without refusals, and in the others once those stop', async function () {
    await checkAsync(
      fc.asyncProperty(namespaces, async (given) => {
        const clock = new TestClock();
        const driver = new RefusingDriver({ now: () => clock.now() });
        const world = await aSupervisor({ pool: { replicas: 0 }, driver });
        const { supervisor, pools } = world;
        const made: { readonly pool: PoolRecord; readonly of: (typeof given)[number] }[] = [];
        for (const [n, of] of given.entries()) {
          for (let p = 0; p < of.pools; p++) {
            const owner = { ...ALICE, namespace: `n${n}` };
            made.push({
              of,
              pool: await pools.create(aPool({ name: `p${p}`, owner, replicas: REPLICAS })),
            });
          }
        }
        const counts = (uid: string) => supervisor.pools.get(uid)?.counts;
        await eventually(
          () => made.every(({ pool }) => counts(pool.uid)?.idle === REPLICAS),
          'filled',
        );
        const advance = async (ms: number, until: () => boolean): Promise<void> => {
          for (let at = 0; at < ms && !until(); at += 500) {
            world.clock.advance(500);
            for (let turn = 0; turn < 12; turn++)
              await new Promise<void>((resolve) => {
                setImmediate(resolve);
              });
          }
        };
        await advance(STEADY_MS + 1_000, () => false);

        for (const [n, { refusal }] of given.entries())
          if (refusal) driver.refused.set(`n${n}`, refusal);
        for (const { pool, of } of made) {
          await supervisor.pools.change(pool.uid, (record) => ({
            ...record,
            ...(of.wants === 'trim'
              ? { replicas: 1 }
              : of.wants === 'rollout'
                ? { updateRevision: 'r2' }
                : { deleting: 'keep-running' as const }),
          }));
        }
        const isDone = ({ pool, of }: (typeof made)[number]): boolean => {
          if (of.wants === 'deletion') return supervisor.pools.get(pool.uid) === undefined;
          if (of.wants === 'trim')
            return counts(pool.uid)?.idle === 1 && counts(pool.uid)?.retiring === 0;
          return (
            counts(pool.uid)?.idle === REPLICAS &&
            supervisor.index.stale(pool.uid, 'r2', { as: 'idle', most: 1 }).length === 0
          );
        };
        const others = made.filter(({ of }) => of.refusal === undefined);
        await advance(WITHIN_MS, () => others.every(isDone));
        expect(
          others
            .filter((one) => !isDone(one))
            .map(({ pool, of }) => [pool.owner.namespace, pool.name, of.wants, counts(pool.uid)]),
          'held up',
        ).to.deep.equal([]);
        expect(driver.refusals).to.be.at.most(MOST_REFUSALS * (made.length - others.length));

        driver.refused.clear();
        const answered = made.filter(({ of }) => of.refusal !== 'silent');
        await advance(HEALED_MS, () => answered.every(isDone));
        expect(
          answered
            .filter((one) => !isDone(one))
            .map(({ pool, of }) => [pool.name, of.wants, counts(pool.uid)]),
          'still refused',
        ).to.deep.equal([]);
      }),
      { numRuns: runs(12) },
    );
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { v7 } from 'uuid';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { aDefinition, anOrder } from '../support/builders/instance-orders.ts';
import { Life, SharedRecords } from '../support/fakes/shared-records.ts';
import { aReplica, sharedStores } from '../support/harness/shared-supervisors.ts';
import { checkAsync } from './check.ts';
import { runs } from '../support/harness/runs.ts';

type Step =
  /** The leader dies, or stalls for longer than its leases. */
  | { readonly do: 'take over'; readonly by: number }
  | { readonly do: 'resize'; readonly replicas: number }
  /** Launches stop between record and process, or continue. */
  | { readonly do: 'stall' | 'flow' }
  /** Stopped launches continue. */
  | { readonly do: 'go on'; readonly count: number }
  | { readonly do: 'fail a launch' }
  /** A record sent by a dead leader lands. */
  | { readonly do: 'late record' }
  | { readonly do: 'lag' | 'catch up'; readonly of: number }
  | { readonly do: 'time'; readonly ms: number };

const WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 500;
/** Longest step of time, so that work continues in between. */
const MOST_AT_ONCE_MS = 2_000;
/** A replica whose mirrors are behind for longer leads nothing; see the property of leases. */
const MOST_BEHIND_MS = 5_000;

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 25; turn++)
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
};

/** Three replicas that fill one pool in turn. */
const aRefill = async (replicas: number) => {
  const stores = await sharedStores({
    pool: { replicas, definition: aDefinition({}, { startupTimeoutMs: 60_000 }) },
  });
  const shared = aCoordination(stores.clock);
  const all = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const pools = new SharedRecords(stores.pools, new Life());
      return { pools, it: await aReplica({ ...stores, pools }, shared) };
    }),
  );
  return { stores, all, stopped: [] as (() => void)[], leader: { of: 0 } };
};

type Refill = Awaited<ReturnType<typeof aRefill>>;

/** A late leader catches up in time. */
const pass = async (refill: Refill, ms: number): Promise<void> => {
  for (let passed = 0; passed < ms; passed += MOST_AT_ONCE_MS) {
    if (passed + MOST_AT_ONCE_MS > MOST_BEHIND_MS)
      await take(refill, { do: 'catch up', of: refill.leader.of });
    refill.stores.clock.advance(Math.min(MOST_AT_ONCE_MS, ms - passed));
    await turns();
  }
};

const take = async (refill: Refill, step: Step): Promise<void> => {
  const { stores, all, stopped, leader } = refill;
  const { truth, pools, pool, clock } = stores;
  switch (step.do) {
    case 'take over':
      all[leader.of]?.it.die();
      leader.of = step.by;
      all[leader.of]?.it.lead();
      break;
    case 'resize':
      for (const record of await pools.list())
        await pools.update({ ...record, replicas: step.replicas });
      break;
    case 'stall':
      truth.betweenWrites = () =>
        new Promise((resolve) => {
          stopped.push(resolve);
        });
      break;
    case 'flow':
      truth.betweenWrites = undefined;
      break;
    case 'go on':
      for (const goOn of stopped.splice(0, step.count)) goOn();
      break;
    case 'fail a launch':
      truth.failNext('launch', new OutcomeUnknown('told to be unknown'));
      break;
    case 'late record': {
      const { definition, record } = anOrder(undefined, v7());
      const before = truth.betweenWrites;
      truth.betweenWrites = () => new Promise(() => undefined);
      void truth.launch(
        { definition, record: { ...record, poolUid: pool.uid, createdAt: clock.now() } },
        () => true,
      );
      await turns();
      truth.betweenWrites = before;
      break;
    }
    case 'lag':
      all[step.of]?.pools.lag();
      all[step.of]?.it.driver.lag();
      break;
    case 'catch up':
      all[step.of]?.pools.catchUp();
      all[step.of]?.it.driver.catchUp();
      break;
    case 'time':
      await pass(refill, step.ms);
  }
  await turns();
};

/** Mirrors catch up, a replica leads, and hanging calls end. */
const calmDown = async (refill: Refill, by: number): Promise<void> => {
  await take(refill, { do: 'flow' });
  refill.stores.truth.heal('launch');
  for (const of of [0, 1, 2]) await take(refill, { do: 'catch up', of });
  await take(refill, { do: 'take over', by });
  await take(refill, { do: 'go on', count: Number.POSITIVE_INFINITY });
};

const stateOf = async ({ stores, all, leader }: Refill) => {
  const supervisor = all[leader.of]?.it.supervisor;
  const [record] = await stores.pools.list();
  return {
    wanted: record?.replicas,
    counts: supervisor?.pools.get(stores.pool.uid)?.counts,
    failures: supervisor?.pools.whole(stores.pool.uid)?.context.breaker.failures,
    records: (await stores.truth.records.all()).length,
    processes: stores.truth.running().length,
  };
};

const isFull = ({
  wanted,
  counts,
  records,
  processes,
}: Awaited<ReturnType<typeof stateOf>>): boolean =>
  counts?.idle === wanted &&
  counts?.starting === 0 &&
  counts.retiring === 0 &&
  records === wanted &&
  processes === wanted;

const replica = fc.nat({ max: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('take over'), by: replica }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('resize'), replicas: fc.integer({ min: 0, max: 8 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('stall', 'flow') }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('go on'), count: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('fail a launch', 'late record') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('lag', 'catch up'), of: replica }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('time'),
      ms: fc.constantFrom(100, 1_000, 4_000, 70_000),
    }),
  },
);

describe('a refill interrupted at any step', function () {
  it('is completed by the next leader, without surplus, failed starts or leftovers', async () => {
    await checkAsync(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }),
        fc.array(step, { maxLength: 20 }),
        replica,
        async (replicas, steps, last) => {
          const refill = await aRefill(replicas);
          for (const one of [{ do: 'take over', by: 0 } as const, ...steps])
            await take(refill, one);
          await calmDown(refill, last);

          let state = await stateOf(refill);
          for (let ms = 0; ms < WITHIN_MS && !isFull(state); ms += LOOK_EVERY_MS) {
            await take(refill, { do: 'time', ms: LOOK_EVERY_MS });
            state = await stateOf(refill);
          }

          expect(
            isFull(state),
            `full ${WITHIN_MS} ms after the last fault, and not ${JSON.stringify(state)}`,
          ).to.equal(true);
          expect(state.failures, 'failed starts').to.equal(0);
        },
      ),
      { numRuns: runs(200) },
    );
  });
});

import { expect } from 'chai';
import type { Admission, ClaimEntry } from '../../src/contracts/coordination/claims.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const MARK = { key: 'k'.repeat(22), body: 'b'.repeat(22) };

const codeOf = (error: unknown): string => (error instanceof Refusal ? error.code : String(error));

const isWritten = ({ calls }: { readonly calls: readonly string[] }): Promise<void> =>
  eventually(() => calls.some((call) => call.startsWith('claim')), 'it is being written');

describe('a claim', () => {
  const filled = async (replicas: number) => {
    const world = await aSupervisor({ pool: { replicas } });
    const { supervisor, pool, driver, coordination } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === replicas, 'filled');
    const entries: ClaimEntry[] = [];
    const admit = coordination.admitClaim;
    /** What happens before an admission. */
    let before: (entry: ClaimEntry) => Promise<void> = async () => undefined;
    Object.assign(coordination, {
      admitClaim: async (entry: ClaimEntry): Promise<Admission> => {
        entries.push(entry);
        await before(entry);
        return await admit(entry);
      },
    });
    const flap = async ({ instance }: ClaimEntry): Promise<void> => {
      driver.becomeUnavailable(instance);
      await eventually(() => supervisor.pools.get(pool.uid)?.counts.unavailable === 1, 'not ready');
    };
    /** A claim whose write has no answer, nor its undoing, until the driver lets them go. */
    const stuck = async () => {
      for (const call of ['claim', 'retire'] as const) driver.hold(call);
      const claimed = world.claim(alice, { poolName: 'default' }).catch(codeOf);
      await isWritten(driver);
      return { claimed };
    };
    return {
      ...world,
      entries,
      flap,
      stuck,
      onAdmission: (happens: typeof before) => {
        before = happens;
      },
    };
  };

  describe('whose instance is briefly not ready while it reserves quota', () => {
    const flapped = async () => {
      const world = await filled(1);
      world.onAdmission(world.flap);
      const refused = await rejection(world.claim(alice, { poolName: 'default' }));
      world.onAdmission(async () => undefined);
      expect(codeOf(refused)).to.equal('POOL_EXHAUSTED');
      expect(world.driver.calls.filter((call) => call.startsWith('claim'))).to.deep.equal([]);
      return world;
    };

    it('leaves the instance to the next claim', async () => {
      const { claim, driver, entries, supervisor, pool, coordination } = await flapped();
      const id = entries[0]?.instance ?? '';
      driver.becomeAvailable(id);
      await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'ready again');

      // and no clock was moved
      expect(await claim(alice, { poolName: 'default' })).to.have.property('id', id);
      expect((await coordination.used(alice)).sandboxes).to.equal(1);
    });

    it('reports that instances exist but cannot be handed out now', async () => {
      const { claim } = await flapped();
      const refused = await rejection(claim(alice, { poolName: 'default' }));
      expect(refused)
        .to.be.instanceOf(Refusal)
        .with.nested.property('detail.hint')
        .that.includes('cannot be claimed at present');
    });

    it('does not delay later claims', async () => {
      const { claim } = await flapped();

      expect(codeOf(await rejection(claim(alice, { poolName: 'default' })))).to.equal(
        'POOL_EXHAUSTED',
      ); // and no clock was moved
    });

    it('does not prevent the deletion of its pool', async () => {
      const { supervisor, pool, pools } = await flapped();
      await supervisor.pools.change(pool.uid, (record) => ({
        ...record,
        deleting: 'keep-running',
      }));

      await eventually(
        () => pools.records.size === 0 && supervisor.actors.size === 0,
        'the pool is gone',
      );
    });
  });

  describe('next to an unsettled claim of the only idle instance', () => {
    for (const waitMs of [0, 1_000]) {
      it(`is not refused as exhausted, waiting ${waitMs} ms`, async () => {
        const { claim, clock, driver, stuck } = await filled(1);
        const { claimed } = await stuck();
        let outcome: string | undefined;
        void claim(alice, { poolName: 'default', waitMs }).catch((error: unknown) => {
          outcome = codeOf(error);
        });
        await eventually(() => {
          clock.advance(500);
          return outcome !== undefined;
        }, 'it is refused');

        expect(outcome).to.equal('UNAVAILABLE');
        expect(await claimed).to.equal('UNAVAILABLE');
        for (const call of ['claim', 'retire'] as const) driver.letGo(call);
      });
    }
  });

  describe('with an Idempotency-Key, whose instance dies before the write', () => {
    /** It is being written when its instance dies, and what became of the write is not known. */
    const dies = async (...held: readonly 'retire'[]) => {
      const world = await filled(2);
      const { claim, driver, entries } = world;
      driver.startsByItself = false;
      for (const call of ['claim', ...held] as const) driver.hold(call);
      const claimed = claim(alice, { poolName: 'default', mark: MARK });
      await isWritten(driver);
      driver.end(entries[0]?.instance ?? '');
      await driver.settled();
      driver.failNext('claim', new OutcomeUnknown());
      driver.letGo('claim');
      return { ...world, claimed };
    };

    it('gets the next instance', async () => {
      const { claimed, entries, supervisor, pool, coordination } = await dies();

      const { id } = await claimed;
      expect(entries.map(({ instance, from }) => [instance, from])).to.deep.equal([
        [entries[0]?.instance, undefined],
        [id, entries[0]?.instance],
      ]);
      // so the entry names the one that is claimed
      expect(entries.map(({ request }) => request)).to.deep.equal([MARK, MARK]);
      expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(1);
      expect((await coordination.used(alice)).sandboxes).to.equal(1);
    });

    it('is refused with 503 while the write may still land', async () => {
      const world = await dies('retire');
      const { claimed, driver, entries, supervisor, pool, pendingRequests, clock } = world;
      await eventually(
        () => driver.calls.some((call) => call.startsWith('retire')),
        'it is being retired',
      );
      clock.advance(5_000);

      expect(codeOf(await rejection(claimed))).to.equal('UNAVAILABLE');
      expect(entries).to.have.lengthOf(1);
      expect(pendingRequests.settled(MARK)).not.to.equal(undefined);
      driver.letGo('retire');
      await eventually(() => {
        clock.advance(100);
        return pendingRequests.settled(MARK) === undefined;
      }, 'it is known');
      expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(0);
    });
  });

  it('is not refused as exhausted while the outcome of the claim of an idle instance is unknown', async () => {
    const { claim, driver, entries, clock } = await filled(1);
    driver.hold('claim');
    driver.hold('retire');
    const first = rejection(claim(alice, { poolName: 'default' }));
    await eventually(() => entries.length === 1, 'it is being written');
    const others = [0, 2_000].map((waitMs) =>
      rejection(claim(alice, { poolName: 'default', waitMs })),
    );
    let refused: readonly string[] = [];
    void Promise.all(others).then((errors) => {
      refused = errors.map(codeOf);
    });
    await eventually(() => {
      clock.advance(100);
      return refused.length === 2;
    }, 'both are refused');

    expect(refused).to.deep.equal(['UNAVAILABLE', 'UNAVAILABLE']);
    expect(codeOf(await first)).to.equal('UNAVAILABLE');
  });

  describe('of a sandbox without a network', () => {
    const refusedBy = async (network: 'none' | 'host', now: 'none' | 'host'): Promise<string> => {
      const definition = aDefinition({}, { network });
      const world = await aSupervisor({ pool: { replicas: 1, definition } });
      const { supervisor, pool, claim } = world;
      await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
      if (now !== network) {
        const record = supervisor.pools.recordOf(pool.uid) ?? pool;
        Object.assign(record.definition, { network: now });
      }
      const withoutNetwork = { field: 'allow_internet_access' };
      return await claim(alice, { poolName: 'default', withoutNetwork }).then(
        () => 'claimed',
        (error: Error) => error.message,
      );
    };

    it('is refused if the pool, or an instance older than its template, has a network', async () => {
      expect(await refusedBy('none', 'none')).to.equal('claimed');
      expect(await refusedBy('host', 'host')).to.match(/^allow_internet_access: the pool's/);
      expect(await refusedBy('host', 'none')).to.match(/^allow_internet_access: the pool's/);
    });
  });
});

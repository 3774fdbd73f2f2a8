import { expect } from 'chai';
import { v7 } from 'uuid';
import { RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import type { InstanceRecords } from '../../src/embedded/store/instance-records.ts';
import { aClaim, aDefinition, anOrder } from '../support/builders/instance-orders.ts';
import { rejection } from '../support/harness/rejection.ts';

export interface InstanceRecordsUnderTest {
  readonly records: InstanceRecords;
  close(): Promise<void>;
}

/** What every instance table promises. `make` gives an empty one. */
export const instanceRecordsSuite = (
  name: string,
  make: () => Promise<InstanceRecordsUnderTest>,
): void => {
  describe(`InstanceRecords: ${name}`, () => {
    let under: InstanceRecordsUnderTest;
    let records: InstanceRecords;

    beforeEach(async () => {
      under = await make();
      records = under.records;
    });
    afterEach(() => under.close());

    const born = async () => {
      const order = anOrder();
      return records.launchOrder(order.record, order.definition);
    };
    const claimed = async () => {
      const record = await born();
      return records.claim(record, aClaim());
    };
    const refused = async (attempt: Promise<unknown>) =>
      expect(await rejection(attempt)).to.be.instanceOf(RecordConflict);

    it('returns a launched instance completely, with its definition', async () => {
      const definition = aDefinition(
        { argv: ['echo', 'ä"\u0001\\'], env: { A: 'b' }, ports: { web: 80 } },
        { network: 'host', idleTimeoutMs: 5 },
      );
      const order = anOrder(definition);

      const record = await records.launchOrder(order.record, definition);

      expect(record).to.deep.equal({ ...order.record, state: 'idle', revision: record.revision });
      expect(await records.read(record.id)).to.deep.equal({ record, definition });
      expect(await records.all()).to.deep.equal([{ record, definition }]);
    });

    it('keeps the deadline of a launch for one claim, even after the claim', async () => {
      const order = anOrder();
      const idle = await records.launchOrder(
        { ...order.record, claimBy: 1_700_000_060_000 },
        order.definition,
      );
      const record = await records.claim(idle, aClaim());

      expect([idle.claimBy, record.claimBy]).to.deep.equal([1_700_000_060_000, 1_700_000_060_000]);
      expect((await records.read(record.id))?.record).to.deep.equal(record);
    });

    it('returns nothing for an unknown id', async () => {
      const id = v7();

      expect(await records.read(id)).to.equal(undefined);
      expect(await records.all()).to.deep.equal([]);
      await refused(
        records.claim({ ...anOrder(undefined, id).record, revision: '1', state: 'idle' }, aClaim()),
      );
      await refused(records.amend(id, { idleTimeoutMs: 1 }, '1'));
      await refused(records.retire(id, '1'));
      expect(await records.release(id, { reason: 'deleted', exitCode: null })).to.equal(undefined);
      await records.forget(id);
    });

    it('refuses a second launch of an id, and keeps the first', async () => {
      const order = anOrder();
      const first = await records.launchOrder(order.record, order.definition);

      await refused(records.launchOrder({ ...order.record, poolName: 'other' }, order.definition));

      expect((await records.read(first.id))?.record).to.deep.equal(first);
    });

    it('stores the whole claim of an idle record, with a new revision', async () => {
      const idle = await born();
      const claim = aClaim({ idleTimeoutMs: 60_000, maxLifetimeMs: 0 });

      const record = await records.claim(idle, claim);

      expect(record).to.deep.equal({ ...idle, state: 'claimed', claim, revision: record.revision });
      expect(record.revision).to.not.equal(idle.revision);
      expect((await records.read(idle.id))?.record).to.deep.equal(record);
    });

    it('keeps further fields of a claim through every later change', async () => {
      const claim = aClaim({ metadata: { job: '42', 'ä"': '' }, sealedEnv: 'c2VhbGVk' });

      const record = await records.claim(await born(), claim);
      const amended = await records.amend(record.id, { idleTimeoutMs: 9 }, record.revision);
      const ended = await records.release(record.id, { reason: 'deleted', exitCode: null });

      expect(record.claim).to.deep.equal(claim);
      expect(amended.claim).to.deep.equal({ ...claim, idleTimeoutMs: 9 });
      expect(ended?.claim).to.deep.equal({ ...claim, idleTimeoutMs: 9 });
      expect((await records.read(record.id))?.record).to.deep.equal(ended);
    });

    it('gives the record to exactly one of 64 simultaneous claims', async () => {
      const idle = await born();
      const claims = Array.from({ length: 64 }, (_, user) =>
        aClaim({ owner: { namespace: 'n', team: 't', user: `u${user}` } }),
      );

      const outcomes = await Promise.allSettled(claims.map((claim) => records.claim(idle, claim)));

      const won = outcomes.flatMap((outcome) =>
        outcome.status === 'fulfilled' ? [outcome.value] : [],
      );
      const lost = outcomes.filter(
        (outcome) => outcome.status === 'rejected' && outcome.reason instanceof RecordConflict,
      );
      expect([won.length, lost.length]).to.deep.equal([1, 63]);
      expect((await records.read(idle.id))?.record).to.deep.equal(won[0]);
    });

    it('gives each instance to either its claim or its retirement, never both', async () => {
      const idle = await Promise.all(Array.from({ length: 32 }, born));

      const rounds = await Promise.all(
        idle.map(async (record, index) => {
          const { id, revision } = record;
          const claim = () => records.claim(record, aClaim());
          const retire = () => records.retire(id, revision);
          const [first, second] = await Promise.allSettled(
            index % 2 === 0 ? [claim(), retire()] : [retire(), claim()],
          );
          return {
            wins: [first, second].filter(({ status }) => status === 'fulfilled').length,
            left: await records.read(id),
            claimWon: (index % 2 === 0 ? first : second).status === 'fulfilled',
          };
        }),
      );

      for (const { wins, left, claimWon } of rounds) {
        expect(wins).to.equal(1);
        expect(left?.record.state).to.equal(claimWon ? 'claimed' : undefined);
      }
    });

    it("refuses a claim at a revision other than the record's", async () => {
      const idle = await born();

      for (const revision of [`${idle.revision}0`, '', 'nonsense', '-1'])
        await refused(records.claim({ ...idle, revision }, aClaim()));

      expect((await records.read(idle.id))?.record).to.deep.equal(idle);
    });

    it('refuses to claim a claimed record, even at its current revision', async () => {
      const mine = await claimed();

      await refused(records.claim(mine, aClaim()));

      expect((await records.read(mine.id))?.record).to.deep.equal(mine);
    });

    it('changes the idle timeout of a claimed record at its revision', async () => {
      const mine = await claimed();

      const record = await records.amend(mine.id, { idleTimeoutMs: 90_000 }, mine.revision);

      expect(record).to.deep.equal({
        ...mine,
        revision: record.revision,
        claim: { ...mine.claim, idleTimeoutMs: 90_000 },
      });
      await refused(records.amend(mine.id, { idleTimeoutMs: 1 }, mine.revision));
      expect((await records.read(mine.id))?.record).to.deep.equal(record);
    });

    it('changes the end of a claimed record, even together with its pause', async () => {
      const claim = aClaim({ endsAt: 1_700_000_300_000 });
      const mine = await records.claim(await born(), claim);

      const moved = await records.amend(mine.id, { endsAt: 1_700_000_001_000 }, mine.revision);
      const paused = await records.amend(mine.id, { pausedAt: 5 }, moved.revision);
      const resumed = await records.amend(mine.id, { pausedAt: null, endsAt: 7 }, paused.revision);

      expect(mine.claim).to.deep.equal(claim);
      expect(paused.claim).to.deep.equal({ ...claim, endsAt: 1_700_000_001_000, pausedAt: 5 });
      expect(resumed.claim).to.deep.equal({ ...claim, endsAt: 7 });
      expect((await records.read(mine.id))?.record).to.deep.equal(resumed);
    });

    it('bumps the revision of idle records only, so earlier requests fail', async () => {
      const idle = await born();
      const mine = await claimed();

      const record = await records.bump(idle.id, idle.revision);

      expect(record).to.deep.equal({ ...idle, revision: record.revision });
      await refused(records.claim(idle, aClaim()));
      await refused(records.bump(idle.id, idle.revision));
      await refused(records.bump(mine.id, mine.revision));
      expect((await records.claim(record, aClaim())).state).to.equal('claimed');
    });

    it('keeps the pause time of a claimed record until it resumes', async () => {
      const claim = aClaim({ metadata: { job: '42' }, autoResume: true });
      const mine = await records.claim(await born(), claim);

      const paused = await records.amend(mine.id, { pausedAt: 1_700_000_009_000 }, mine.revision);
      const longer = await records.amend(mine.id, { idleTimeoutMs: 7 }, paused.revision);
      expect(longer.claim).to.deep.equal({
        ...claim,
        idleTimeoutMs: 7,
        pausedAt: 1_700_000_009_000,
      });
      expect((await records.read(mine.id))?.record).to.deep.equal(longer);
      await refused(records.amend(mine.id, { pausedAt: null }, mine.revision));
      const goesOn = await records.amend(mine.id, { pausedAt: null }, longer.revision);
      expect(goesOn.claim).to.deep.equal({ ...claim, idleTimeoutMs: 7 });
    });

    it('refuses to change an unclaimed record', async () => {
      const idle = await born();
      const mine = await claimed();
      const ending = await records.release(mine.id, { reason: 'deleted', exitCode: null });

      await refused(records.amend(idle.id, { idleTimeoutMs: 1 }, idle.revision));
      await refused(records.amend(mine.id, { idleTimeoutMs: 1 }, ending?.revision ?? ''));
    });

    it('retires an idle record for good, and never a claimed one', async () => {
      const idle = await born();
      const mine = await claimed();

      await records.retire(idle.id, idle.revision);
      await refused(records.retire(idle.id, idle.revision));
      await refused(records.retire(mine.id, mine.revision));

      expect((await records.all()).map(({ record }) => record)).to.deep.equal([mine]);
    });

    it('releases a claimed record at any revision, and keeps the claim', async () => {
      const mine = await claimed();
      await records.amend(mine.id, { idleTimeoutMs: 5 }, mine.revision);

      const record = await records.release(mine.id, { reason: 'idle-timeout', exitCode: 137 });

      expect(record?.state).to.equal('ending');
      expect(record?.end).to.deep.equal({ reason: 'idle-timeout', exitCode: 137 });
      expect(record?.claim?.owner).to.deep.equal(mine.claim?.owner);
      expect(record?.revision).to.not.equal(mine.revision);
      expect((await records.read(mine.id))?.record).to.deep.equal(record);
    });

    it('keeps the first recorded end, and its revision', async () => {
      const mine = await claimed();
      const first = await records.release(mine.id, { reason: 'deleted', exitCode: null });

      const second = await records.release(mine.id, { reason: 'exited', exitCode: 3 });

      expect(second).to.deep.equal(first);
      expect((await records.read(mine.id))?.record.end).to.deep.equal({
        reason: 'deleted',
        exitCode: null,
      });
    });

    it('refuses to release an unclaimed record', async () => {
      const idle = await born();

      await refused(records.release(idle.id, { reason: 'deleted', exitCode: null }));

      expect((await records.read(idle.id))?.record).to.deep.equal(idle);
    });

    it('deletes a record in any state, repeatedly', async () => {
      const idle = await born();
      const mine = await claimed();

      for (const { id } of [idle, mine, mine]) await records.forget(id);

      expect(await records.all()).to.deep.equal([]);
    });

    it('lists more than one page of records', async () => {
      const made = await Promise.all(Array.from({ length: 1_203 }, born));

      const all = await records.all();

      expect(all.map(({ record }) => record.id).toSorted()).to.deep.equal(
        made.map(({ id }) => id).toSorted(),
      );
    });
  });
};

import { expect } from 'chai';
import { MAX_WAITING_OF_POOL, type ClaimEntry } from '../../src/contracts/coordination/claims.ts';
import { type Coordination } from '../../src/contracts/coordination.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { fewAtOnce } from '../support/harness/few-at-once.ts';
import { rejection } from '../support/harness/rejection.ts';

/** What Claims promises: a part of the suite of Coordination. */
export const claimsTests = (under: () => { readonly coordination: Coordination }): void => {
  describe('claims', () => {
    const pool = { uid: 'p1', owner: ALICE };
    let born = 0;
    const admit = (entry: Partial<ClaimEntry> = {}) =>
      under().coordination.admitClaim({
        pool,
        instance: `i${++born}`,
        limit: 100,
        idle: 1,
        ...entry,
      });
    const join = (of = pool) => under().coordination.joinWaiting(of);

    it('reserve quota if no other claim waits', async () => {
      expect([
        await admit({ limit: 2 }),
        await admit({ limit: 2 }),
        await admit({ limit: 2 }),
      ]).to.deep.equal(['admitted', 'admitted', 'full']);
      expect(
        await under().coordination.stillReserved(ALICE, 'sandboxes', { name: `i${born - 1}` }),
      ).to.equal(true);
      expect(
        await under().coordination.stillReserved(ALICE, 'sandboxes', { name: `i${born}` }),
      ).to.equal(false);
    });

    it("reserve the claimer's quota in another user's pool", async () => {
      const bob = { ...ALICE, user: 'bob' };
      await under().coordination.whenKnown(bob);

      expect([
        await admit({ limit: 1, owner: bob }),
        await admit({ limit: 1, owner: bob }),
      ]).to.deep.equal(['admitted', 'full']);
      expect(
        await under().coordination.stillReserved(bob, 'sandboxes', { name: `i${born - 1}` }),
      ).to.equal(true);
      expect(
        await under().coordination.stillReserved(ALICE, 'sandboxes', { name: `i${born - 1}` }),
      ).to.equal(false);
      expect(await admit({ limit: 1 })).to.equal('admitted');
    });

    it('take turns for one idle instance', async () => {
      const [first, second] = [await join(), await join()];

      expect(await admit()).to.equal('not-its-turn');
      expect(await admit({ place: second })).to.equal('not-its-turn');
      expect(await admit({ place: first })).to.equal('admitted');
      expect(await admit()).to.equal('not-its-turn');
      expect(await admit({ place: second })).to.equal('admitted');
      expect(await admit()).to.equal('admitted');
    });

    it('try as many instances as are idle, in any order', async () => {
      const [first, second, third] = [await join(), await join(), await join()];

      expect(await admit({ place: third, idle: 2 })).to.equal('not-its-turn');
      expect(await admit({ place: second, idle: 2 })).to.equal('admitted');
      expect(await admit({ place: first, idle: 1 })).to.equal('admitted');
      expect(await admit({ idle: 1 })).to.equal('not-its-turn');
      expect(await admit({ idle: 2 })).to.equal('admitted');
      expect(await admit({ place: third, idle: 1 })).to.equal('admitted');
    });

    it('reserve nothing before their turn', async () => {
      const place = await join();

      expect(await admit({ instance: 'early' })).to.equal('not-its-turn');
      expect(
        await under().coordination.stillReserved(ALICE, 'sandboxes', { name: 'early' }),
      ).to.equal(false);
      expect(await admit({ place, limit: 1 })).to.equal('admitted');
    });

    it('keep their position if the instance that they were admitted for is lost', async () => {
      const [first, second, third] = [await join(), await join(), await join()];
      expect(await admit({ place: second, instance: 'lost', idle: 2 })).to.equal('admitted');

      expect(await admit({ place: second, from: 'lost' })).to.equal('not-its-turn');
      expect(
        await under().coordination.stillReserved(ALICE, 'sandboxes', { name: 'lost' }),
      ).to.equal(false);
      expect(await admit({ place: first })).to.equal('admitted');
      expect(await admit({ place: third })).to.equal('not-its-turn');
      expect(await admit({ place: second })).to.equal('admitted');
    });

    it('release their earlier reservation at each attempt, in turn or not, even at a full quota', async () => {
      await admit({ instance: 'a' });
      await admit({ instance: 'b' });

      expect(await admit({ from: 'a', limit: 1 })).to.equal('full');
      expect(await under().coordination.stillReserved(ALICE, 'sandboxes', { name: 'a' })).to.equal(
        false,
      );
      await join();
      expect(await admit({ from: 'b' })).to.equal('not-its-turn');
      expect(await under().coordination.stillReserved(ALICE, 'sandboxes', { name: 'b' })).to.equal(
        false,
      );
    });

    it('keep their position while the quota is used up, until they leave', async () => {
      await admit();
      const place = await join();

      expect(await admit({ place, limit: 1 })).to.equal('full');
      expect(await admit({ limit: 2 })).to.equal('not-its-turn');
      await under().coordination.leaveWaiting(place);
      await under().coordination.leaveWaiting(place);
      expect(await admit({ limit: 2 })).to.equal('admitted');
    });

    it('are counted while they wait', async () => {
      const { coordination } = under();
      expect(await coordination.waiting(pool)).to.equal(0);
      const [first, second, third] = [await join(), await join(), await join()];
      expect(await coordination.waiting(pool)).to.equal(3);

      await coordination.leaveWaiting(second);
      await admit({ place: first });

      expect(await coordination.waiting(pool)).to.equal(1);
      await coordination.leaveWaiting(third);
      expect(await coordination.waiting(pool)).to.equal(0);
    });

    it('do not wait for claims of another pool', async () => {
      await join();

      expect(await admit({ pool: { ...pool, uid: 'p2' } })).to.equal('admitted');
    });

    describe('with an Idempotency-Key', () => {
      const mark = { key: 'k'.repeat(22), body: 'b'.repeat(22) };
      const owner = { tenant: ALICE, ttlMs: 60_000 };
      const admitMarked = (entry: Partial<ClaimEntry> = {}) =>
        admit({ request: mark, open: owner, looked: true, ...entry });

      it('open it in the same step', async () => {
        expect(await admitMarked()).to.equal('admitted');

        expect(await under().coordination.openRequest(mark, owner)).to.deep.equal({
          kind: 'in-flight',
        });
        await under().coordination.keepAnswer(mark, owner, 'the answer');
        expect(await under().coordination.openRequest(mark, owner)).to.deep.equal({
          kind: 'answered',
          answer: 'the answer',
        });
      });

      it('do nothing if it is in flight, answered, or has another body', async () => {
        await admitMarked();
        const outcomes = [
          await admitMarked({ instance: 'x' }),
          await admitMarked({ instance: 'x', request: { ...mark, body: 'other' } }),
        ];
        await under().coordination.keepAnswer(mark, owner, 'the answer');
        outcomes.push(await admitMarked({ instance: 'x' }));

        expect(outcomes).to.deep.equal([
          { opened: { kind: 'in-flight' } },
          { opened: { kind: 'reused' } },
          { opened: { kind: 'answered', answer: 'the answer' } },
        ]);
        expect(
          await under().coordination.stillReserved(ALICE, 'sandboxes', { name: 'x' }),
        ).to.equal(false);
      });

      it('reserve nothing if an earlier claim with the key was sent to a cluster', async () => {
        const { coordination } = under();
        await coordination.openRequest(mark, owner);
        await coordination.placeRequest(mark, owner, 'west::p');
        await coordination.giveUpRequest(mark, owner);

        expect(await admitMarked({ instance: 'x' })).to.deep.equal({
          opened: { kind: 'new', place: 'west::p' },
        });
        expect(await coordination.confirmRequest(mark)).to.equal(true);
        expect(await coordination.stillReserved(ALICE, 'sandboxes', { name: 'x' })).to.equal(false);
      });

      it('are new for one of many at once', async () => {
        const admissions = await Promise.all(Array.from({ length: 16 }, () => admitMarked()));

        expect(admissions.filter((admission) => admission === 'admitted')).to.have.length(1);
      });

      it('have opened it even out of turn or at a full quota', async () => {
        const place = await join();
        expect(await admitMarked()).to.equal('not-its-turn');
        expect(await admit({ request: mark, looked: true })).to.equal('not-its-turn');
        await under().coordination.leaveWaiting(place);
        expect(await admit({ request: mark, looked: true, limit: 0 })).to.equal('full');
        expect(await under().coordination.openRequest(mark, owner)).to.deep.equal({
          kind: 'in-flight',
        });
        await under().coordination.giveUpRequest(mark, owner);

        expect(await admitMarked()).to.equal('admitted');
      });
    });

    it('beyond the limit cannot wait', async () => {
      const places = await fewAtOnce(MAX_WAITING_OF_POOL, () => join());

      expect(await rejection(join()))
        .to.be.instanceOf(Refusal)
        .with.property('code', 'TOO_MANY_WAITING');
      expect(await under().coordination.waiting({ ...pool, uid: 'p2' })).to.equal(0);
      await fewAtOnce(places.length - 1, (n) => under().coordination.leaveWaiting(places[n + 1]!));
      expect(await admit({ place: await join(), idle: 1 })).to.equal('not-its-turn');
      expect(await under().coordination.waiting(pool)).to.equal(2);
    });
  });
};

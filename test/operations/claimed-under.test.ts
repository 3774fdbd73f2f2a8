import { expect } from 'chai';
import { EffectIsOver } from '../../src/model/approvals/approval-refusals.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { managersFingerprint } from '../../src/model/request-fingerprint.ts';
import {
  IdempotentRequest,
  RequestNotNew,
  requestOwnerOf,
} from '../../src/actors/request/idempotent-request.ts';
import type { ClaimRequest } from '../../src/actors/sandbox/commands/sandbox-operations.ts';
import type { SandboxView } from '../../src/actors/views.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const MARK = { key: 'k'.repeat(22), body: 'b'.repeat(22) };

const codeOf = (error: unknown): string => (error instanceof Refusal ? error.code : String(error));
/** What was found, or why nothing. */
const outcomeOf = (
  found: Promise<SandboxView | undefined>,
): Promise<SandboxView | string | undefined> => found.catch(codeOf);

describe('a claim with an Idempotency-Key', () => {
  const filled = async (replicas = 1) => {
    const made = await aSupervisor({ pool: { replicas } });
    await eventually(
      () => made.supervisor.pools.get(made.pool.uid)?.counts.idle === replicas,
      'filled',
    );
    return made;
  };

  it('is found by its fingerprint while its sandbox lives', async () => {
    const { supervisor, claim, found, clock } = await filled();
    expect(await found(alice, MARK)).to.equal(undefined);
    const { id } = await claim(alice, { poolName: 'default', mark: MARK });

    expect((await found(alice, MARK))?.id).to.equal(id);
    expect(await found({ ...alice, user: 'bob' }, MARK)).to.equal(undefined);
    supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
    await eventually(() => supervisor.sandbox(id) === undefined, 'closed');

    expect(await found(alice, MARK)).to.equal(undefined);
  });

  it('is refused if the body differs', async () => {
    const { claim, found } = await filled();
    await claim(alice, { poolName: 'default', mark: MARK });

    expect(await outcomeOf(found(alice, { ...MARK, body: 'other' }))).to.equal(
      'IDEMPOTENCY_KEY_REUSED',
    );
  });

  it('is in flight until its outcome is known, and never lands twice', async () => {
    const { supervisor, pool, claim, found, pendingRequests, driver, clock } = await filled(2);
    driver.hold('claim');
    const refused = rejection(claim(alice, { poolName: 'default', mark: MARK }));
    await eventually(() => driver.calls.some((call) => call.startsWith('claim')), 'claim sent');
    clock.advance(5_001);
    expect(codeOf(await refused)).to.equal('UNAVAILABLE');

    expect(await outcomeOf(found(alice, MARK))).to.equal('IDEMPOTENCY_IN_FLIGHT');
    const settled = pendingRequests.settled(MARK);
    driver.letGo('claim');
    await settled;

    const running = supervisor.pools.get(pool.uid)?.counts.running ?? 0;
    expect(running).to.equal((await found(alice, MARK)) ? 1 : 0);
  });

  describe('in its idempotency record', () => {
    const OWNER = requestOwnerOf(alice);
    const opened = async (replicas = 1) => {
      const made = await filled(replicas);
      const calls: string[] = [];
      const { openRequest, admitClaim } = made.coordination;
      Object.assign(made.coordination, {
        openRequest: (...call: Parameters<typeof openRequest>) => {
          calls.push('open');
          return openRequest(...call);
        },
        admitClaim: (...call: Parameters<typeof admitClaim>) => {
          calls.push('admit');
          return admitClaim(...call);
        },
      });
      const claimMarked = async (part: Partial<ClaimRequest> = {}) => {
        const opening = new IdempotentRequest(made.coordination, MARK, { owner: OWNER });
        const view = await made.claim(alice, { poolName: 'default', opening, ...part });
        return { view, opening };
      };
      return { ...made, calls, claimMarked };
    };
    const notNew = async (work: Promise<unknown>): Promise<unknown> => {
      const error = await rejection(work);
      return error instanceof RequestNotNew ? error.opened : error;
    };

    it('opens its request in the same step that admits it', async () => {
      const { calls, claimMarked } = await opened();
      const { opening } = await claimMarked();

      expect(calls).to.deep.equal(['admit']);
      expect([opening.isOpen, opening.foundEarlier]).to.deep.equal([true, false]);
    });

    it('opens its request before it waits', async () => {
      const { claimMarked, coordination, clock, pool } = await opened(0);
      let over = false;
      let waits = 0;
      const refused = rejection(
        claimMarked({ waitMs: 1_000 }).finally(() => {
          over = true;
        }),
      );
      await eventually(() => {
        void coordination.waiting(pool).then((count) => {
          waits = count;
        });
        return waits === 1;
      }, 'it waits');
      expect(await coordination.openRequest(MARK, OWNER)).to.deep.equal({ kind: 'in-flight' });
      await eventually(() => {
        clock.advance(1_000);
        return over;
      }, 'its time is over');

      expect(codeOf(await refused)).to.equal('POOL_EXHAUSTED');
    });

    it('finds the stored answer, even if its pool is empty or gone', async () => {
      const { claimMarked, coordination, supervisor, pool } = await opened();
      await claimMarked();
      await coordination.keepAnswer(MARK, OWNER, 'kept');

      expect(await notNew(claimMarked())).to.deep.equal({ kind: 'answered', answer: 'kept' });
      expect(await notNew(claimMarked({ poolName: 'unknown' }))).to.deep.equal({
        kind: 'answered',
        answer: 'kept',
      });
      await supervisor.pools.change(pool.uid, (record) => ({
        ...record,
        deleting: 'keep-running',
      }));
      expect(await notNew(claimMarked())).to.deep.equal({ kind: 'answered', answer: 'kept' });
      expect(await notNew(claimMarked({ waitMs: 1_000 }))).to.deep.equal({
        kind: 'answered',
        answer: 'kept',
      });
    });

    it('finds a request in flight, and gives the instance back', async () => {
      const { claimMarked, supervisor, pool, claim, coordination } = await opened(1);
      await coordination.openRequest(MARK, OWNER);
      expect(await notNew(claimMarked())).to.deep.equal({ kind: 'in-flight' });

      expect(supervisor.index.idleIn(pool.uid)).to.equal(1);
      expect(await claim(alice, { poolName: 'default' })).to.have.property('status', 'Running');
    });

    it('finds the sandbox of an earlier claim without a stored answer', async () => {
      const { claimMarked, coordination, supervisor, pool } = await opened(2);
      const first = await claimMarked();
      await coordination.giveUpRequest(MARK, OWNER); // as if the daemon had died
      const again = await claimMarked();

      expect([again.view.id, again.opening.foundEarlier, again.opening.isOpen]).to.deep.equal([
        first.view.id,
        true,
        true,
      ]);
      expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(1);
    });

    it("with a manager's key opens in one step, stores no answer, and finds the earlier sandbox", async () => {
      const { claimMarked, coordination, calls, supervisor, pool, clock } = await opened(2);
      const mark = managersFingerprint(MARK.key);
      const asked = (byManager: 'first' | 'again') =>
        new IdempotentRequest(coordination, mark, {
          owner: requestOwnerOf(alice, byManager),
          byManager,
        });
      const [opening, again] = [asked('first'), asked('again')];
      const { id } = (await claimMarked({ opening })).view;
      await opening.keep('an answer');
      expect(calls).to.deep.equal(['admit']);
      expect(await coordination.openRequest(mark, OWNER)).to.include({ kind: 'new' });
      await coordination.giveUpRequest(mark, OWNER);
      const { view } = await claimMarked({ opening: again });

      expect([view.id, again.foundEarlier]).to.deep.equal([id, true]);
      expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(1);
      supervisor.send(id, { type: 'END', reason: 'deleted', now: clock.now() });
      await eventually(() => supervisor.sandbox(id) === undefined, 'closed');
      expect(supervisor.index.claimMarks.hasEnded(mark.key)).to.equal(false);
    });

    it("with a manager's key opens nothing if it is refused earlier", async () => {
      const { claimMarked, coordination, calls } = await opened(0);
      const owner = requestOwnerOf(alice, 'first');
      const opening = new IdempotentRequest(coordination, MARK, { owner, byManager: 'first' });

      expect(await outcomeOf(claimMarked({ opening }).then(({ view }) => view))).to.equal(
        'POOL_EXHAUSTED',
      );
      expect(calls).to.deep.equal([]);
    });

    it('finds that an approved claim has ended, and does not claim again', async () => {
      const { claimMarked, coordination, supervisor, clock } = await opened(2);
      const { view } = await claimMarked();
      await coordination.giveUpRequest(MARK, OWNER);
      supervisor.send(view.id, { type: 'END', reason: 'deleted', now: clock.now() });
      await eventually(() => supervisor.sandbox(view.id) === undefined, 'closed');
      const opening = new IdempotentRequest(coordination, MARK, { owner: OWNER });
      opening.mayBeDone = true;

      expect(await rejection(claimMarked({ opening }))).to.be.instanceOf(EffectIsOver);
      await opening.giveUp();
      expect((await claimMarked()).view.id).not.to.equal(view.id);
    });

    it('finds that a lost replica may have claimed an ended sandbox, and does not claim again', async () => {
      const { claimMarked, coordination, pool, supervisor } = await opened();
      const left = async (instance: string) => {
        const opening = new IdempotentRequest(
          { ...coordination, openRequest: async () => ({ kind: 'new', instance }) as const },
          MARK,
          { owner: OWNER },
        );
        opening.mayBeDone = true;
        return await claimMarked({ opening, waitMs: 1 });
      };
      const gone = '0198c9b0-0000-7000-8000-000000000001';
      expect(await rejection(left(gone))).to.be.instanceOf(EffectIsOver);

      const idle = supervisor.index.nextIdle(pool.uid, '') ?? '';
      expect((await left(idle)).view.id).to.equal(idle);
    });

    it('opens its request even if it is refused, so the caller releases it', async () => {
      const { claimMarked, coordination } = await opened();
      const opening = new IdempotentRequest(coordination, MARK, { owner: OWNER });

      expect(codeOf(await rejection(claimMarked({ poolName: 'unknown', opening })))).to.equal(
        'POOL_NOT_FOUND',
      );
      expect(opening.isOpen).to.equal(true);
    });
  });
});

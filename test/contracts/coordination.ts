import { expect } from 'chai';
import { MAX_KEPT_ANSWER } from '../../src/contracts/coordination/requests.ts';
import { type Coordination } from '../../src/contracts/coordination.ts';
import { type DemandSignal } from '../../src/contracts/coordination/signals.ts';
import type { TokenHolder } from '../../src/contracts/tokens.ts';
import type { EventBatch, EventRecord } from '../../src/model/event.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { SHARDS } from '../../src/model/shards.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { eventually } from '../support/harness/eventually.ts';
import { fewAtOnce } from '../support/harness/few-at-once.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { claimsTests } from './claims.ts';
import { clusterStartsTests } from './cluster-starts.ts';
import { consoleSessionsTests } from './console-sessions.ts';

export interface CoordinationUnderTest {
  readonly coordination: Coordination;
  /** Lets so many ms go by. */
  advance(milliseconds: number): Promise<void>;
  close(): Promise<void>;
}

const BOB = { ...ALICE, user: 'bob' };
const holder = (n: number): TokenHolder => ({ sandbox: `sandbox-${n}`, tenant: ALICE });
const HOLDER = holder(0);

/** What every coordination promises. `make` gives an empty one. */
export const coordinationSuite = (
  name: string,
  make: () => Promise<CoordinationUnderTest>,
): void => {
  describe(`Coordination: ${name}`, () => {
    let under: CoordinationUnderTest;
    let coordination: Coordination;

    beforeEach(async () => {
      under = await make();
      coordination = under.coordination;
    });
    afterEach(() => under.close());

    describe('quota', () => {
      const reserve = (entry: string, amount = 1, limit = 3) =>
        coordination.reserve(ALICE, 'sandboxes', { name: entry, amount, limit });

      it('reserves up to the limit, and no more', async () => {
        expect([
          await reserve('a'),
          await reserve('b'),
          await reserve('c'),
          await reserve('d'),
        ]).to.deep.equal([true, true, true, false]);
      });

      it('never exceeds the limit under concurrent reservations', async () => {
        const taken = await Promise.all(
          Array.from({ length: 64 }, (_, n) => reserve(`n${n}`, 1, 10)),
        );

        expect(taken.filter(Boolean)).to.have.length(10);
      });

      it('counts a name once', async () => {
        await reserve('a', 3);

        expect(await reserve('a', 3)).to.equal(true);
        expect(await reserve('b')).to.equal(false);
      });

      it('replaces the amount of a name', async () => {
        await reserve('a', 3);
        await reserve('a', 1);

        expect(await reserve('b', 2)).to.equal(true);
        expect(await reserve('b', 3)).to.equal(false);
      });

      it('keeps the old amount of a name if its new amount is refused', async () => {
        await reserve('a', 2);

        expect(await reserve('a', 4)).to.equal(false);
        expect(await reserve('b', 2)).to.equal(false);
        expect(await reserve('b', 1)).to.equal(true);
      });

      it('reserves nothing at a limit of 0', async () => {
        expect(await reserve('a', 1, 0)).to.equal(false);
      });

      it('releases an amount once', async () => {
        await reserve('a', 2);
        await reserve('b', 1);

        await coordination.release(ALICE, 'sandboxes', 'a');
        await coordination.release(ALICE, 'sandboxes', 'a');
        await coordination.release(ALICE, 'sandboxes', 'never');
        await coordination.release(BOB, 'pools', 'b');

        expect(await reserve('c', 3)).to.equal(false);
        expect(await reserve('c', 2)).to.equal(true);
      });

      it('separates tenants and resources', async () => {
        await reserve('a', 3);

        expect(
          await coordination.reserve(BOB, 'sandboxes', { name: 'a', amount: 3, limit: 3 }),
        ).to.equal(true);
        expect(
          await coordination.reserve(ALICE, 'pools', { name: 'a', amount: 3, limit: 3 }),
        ).to.equal(true);
        await coordination.release(ALICE, 'pools', 'a');
        expect(await reserve('b')).to.equal(false);
      });

      it('withdraws an amount once', async () => {
        await reserve('a', 3);

        await coordination.withdraw(ALICE, 'sandboxes', { name: 'a' });
        await coordination.withdraw(ALICE, 'sandboxes', { name: 'a' });
        await coordination.withdraw(ALICE, 'sandboxes', { name: 'never' });

        expect([await reserve('b', 3), await reserve('c')]).to.deep.equal([true, false]);
      });

      it('grants nothing more at a limit below the usage, and accepts less', async () => {
        await reserve('a', 5, 5);

        expect([await reserve('b', 1, 3), await reserve('a', 6, 3)]).to.deep.equal([false, false]);
        expect([await reserve('c', 0, 3), await reserve('a', 4, 3)]).to.deep.equal([true, true]);
        expect((await coordination.used(ALICE)).sandboxes).to.equal(4);
        await coordination.release(ALICE, 'sandboxes', 'a');
        expect(await reserve('b', 3, 3)).to.equal(true);
      });

      it('reports the usage of each resource', async () => {
        await reserve('a', 2);
        await coordination.reserve(ALICE, 'replicas', { name: 'p', amount: 4, limit: 10 });

        expect(await coordination.used(ALICE)).to.deep.equal({
          sandboxes: 2,
          pools: 0,
          replicas: 4,
          cpu: 0,
          memory: 0,
        });
        expect(await coordination.used(BOB)).to.deep.equal({
          sandboxes: 0,
          pools: 0,
          replicas: 0,
          cpu: 0,
          memory: 0,
        });
      });

      it('reports reservations that still count', async () => {
        await reserve('a');
        expect(await coordination.stillReserved(ALICE, 'sandboxes', { name: 'a' })).to.equal(true);
        await coordination.release(ALICE, 'sandboxes', 'a');

        expect(await coordination.stillReserved(ALICE, 'sandboxes', { name: 'a' })).to.equal(false);
        expect(await coordination.stillReserved(BOB, 'sandboxes', { name: 'never' })).to.equal(
          false,
        );
      });
    });

    claimsTests(() => under);
    consoleSessionsTests(() => under);
    clusterStartsTests(() => under);

    describe('revoked keys', () => {
      it('are published to all subscribers, until they unsubscribe', async () => {
        const [one, two]: [string[], string[]] = [[], []];
        const forget = coordination.subscribeRevocations((keyId) => {
          one.push(keyId);
        });
        coordination.subscribeRevocations((keyId) => {
          two.push(keyId);
        });
        coordination.publishRevocation('k1');
        await eventually(() => one.includes('k1') && two.includes('k1'), 'both are told');

        forget();
        coordination.publishRevocation('k2');
        await eventually(() => two.includes('k2'), 'who still follows is told');

        expect([one, two]).to.deep.equal([['k1'], ['k1', 'k2']]);
      });
    });

    describe('claim demand', () => {
      it('is published to all subscribers, this replica included, until they unsubscribe', async () => {
        const [one, two]: [DemandSignal[], DemandSignal[]] = [[], []];
        const forget = coordination.subscribeDemand((word) => {
          one.push(word);
        });
        coordination.subscribeDemand((word) => {
          two.push(word);
        });
        const words = (['waits', 'refused', 'served'] as const).map((kind) => ({
          kind,
          poolUid: 'p1',
          principal: 'k1',
        }));
        for (const word of words) coordination.publishDemand(word);
        await eventually(() => one.length === 3 && two.length === 3, 'both are told');

        forget();
        coordination.publishDemand({ kind: 'waits', poolUid: 'p2', principal: 'k1' });
        await eventually(() => two.length === 4, 'who still follows is told');

        // each goes to a node of its own in a Redis cluster
        expect(one).to.have.deep.members(words);
        expect(two.at(-1)).to.deep.equal({ kind: 'waits', poolUid: 'p2', principal: 'k1' });
      });
    });

    describe('a token', () => {
      it('returns its value once', async () => {
        const token = await coordination.issueToken('sandbox-1', 30_000, HOLDER);

        expect(await coordination.redeemToken(token)).to.equal('sandbox-1');
        expect(await coordination.redeemToken(token)).to.equal(undefined);
      });

      it('can be read in advance without a change', async () => {
        const token = await coordination.issueToken('sandbox-1', 30_000, HOLDER);

        expect([
          await coordination.peekToken(token),
          await coordination.peekToken(token),
        ]).to.deep.equal(['sandbox-1', 'sandbox-1']);
        expect(await coordination.redeemToken(token)).to.equal('sandbox-1');
        expect(await coordination.peekToken(token)).to.equal(undefined);
      });

      it('returns its value to one of many simultaneous redemptions', async () => {
        const token = await coordination.issueToken('x', 30_000, HOLDER);

        const values = await Promise.all(
          Array.from({ length: 16 }, () => coordination.redeemToken(token)),
        );

        expect(values.filter((value) => value === 'x')).to.have.length(1);
      });

      it('is invalid after its time', async () => {
        const token = await coordination.issueToken('x', 30_000, HOLDER);
        const other = await coordination.issueToken('y', 60_000, HOLDER);

        await under.advance(30_000);

        expect(await coordination.peekToken(token)).to.equal(undefined);
        expect(await coordination.redeemToken(token)).to.equal(undefined);
        expect(await coordination.redeemToken(other)).to.equal('y');
      });

      it('is unknown if it was never issued', async () => {
        for (const token of ['', 'guess', '__proto__']) {
          expect(await coordination.peekToken(token)).to.equal(undefined);
          expect(await coordination.redeemToken(token)).to.equal(undefined);
        }
      });

      it('has at least 128 bits, is safe in a URL, and is always different', async () => {
        const tokens = await fewAtOnce(500, (n) =>
          coordination.issueToken('same', 30_000, holder(n)),
        );

        expect(new Set(tokens)).to.have.property('size', 500);
        for (const token of tokens) expect(token).to.match(/^[A-Za-z0-9_-]{22,256}$/);
      });

      const ask = (times: number, of: (n: number) => TokenHolder) =>
        fewAtOnce(times, async (n) => {
          const [answer] = await Promise.allSettled([coordination.issueToken('x', 30_000, of(n))]);
          return answer;
        });
      const good = (answers: readonly PromiseSettledResult<string>[]) =>
        answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const refused = (answers: readonly PromiseSettledResult<string>[]) =>
        answers.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));

      it('is limited to 64 waiting per sandbox, without an effect on other sandboxes', async () => {
        const answers = await ask(70, () => HOLDER);

        expect(good(answers)).to.have.length(64);
        expect(String(refused(answers)[0])).to.equal(
          'Refusal: the sandbox has 64 unused tokens, which is the maximum; use one, or wait until one expires',
        );
        expect(refused(answers)[0]).to.be.instanceOf(Refusal).with.property('code', 'RATE_LIMITED');
        expect(refused(answers)[0]).to.have.nested.property('retryAfter', 5);
        expect(await coordination.issueToken('x', 30_000, holder(1))).to.be.a('string');

        const [first = ''] = good(answers);
        await coordination.redeemToken(first);
        await coordination.redeemToken(first); // is counted once
        expect(good(await ask(2, () => HOLDER))).to.have.length(1);
      });

      it('is limited to 512 waiting per tenant, without an effect on other tenants', async () => {
        const answers = await ask(600, holder);

        expect(good(answers)).to.have.length(512);
        expect(String(refused(answers)[0])).to.include('you have 512 unused tokens');
        expect(good(await ask(5, (n) => ({ ...holder(n), tenant: BOB })))).to.have.length(5);
      });

      it('no longer counts once it has expired, however many there were', async () => {
        await ask(512, holder);
        await ask(64, () => ({ ...HOLDER, tenant: BOB }));
        await under.advance(30_000);

        expect(good(await ask(64, () => HOLDER))).to.have.length(64);
        expect(good(await ask(512, (n) => holder(n + 64)))).to.have.length(512 - 64);
      });
    });

    describe('requests with an Idempotency-Key', () => {
      const mark = { key: 'k'.repeat(22), body: 'b'.repeat(22) };
      const owner = { tenant: ALICE, ttlMs: 60_000 };
      const open = (part: Partial<typeof mark> = {}) =>
        coordination.openRequest({ ...mark, ...part }, owner);

      it('are new for one of many that open them at once', async () => {
        const opened = await Promise.all(Array.from({ length: 16 }, () => open()));

        expect(opened.map(({ kind }) => kind).sort()).to.deep.equal([
          ...Array.from({ length: 15 }, () => 'in-flight'),
          'new',
        ]);
      });

      it('are refused with another body, both in flight and answered', async () => {
        await open();
        expect(await open({ body: 'other' })).to.deep.equal({ kind: 'reused' });
        await coordination.keepAnswer(mark, owner, 'the answer');

        expect(await open({ body: 'other' })).to.deep.equal({ kind: 'reused' });
      });

      it('get the stored answer, again and again', async () => {
        await open();
        await coordination.keepAnswer(mark, owner, 'the ünswer');

        expect(await open()).to.deep.equal({ kind: 'answered', answer: 'the ünswer' });
        expect(await open()).to.deep.equal({ kind: 'answered', answer: 'the ünswer' });
      });

      it('get the answer while it is still being written', async () => {
        await open();
        const kept = coordination.keepAnswer(mark, owner, 'early');

        expect(await open()).to.deep.equal({ kind: 'answered', answer: 'early' });
        await kept;
      });

      it('return their target to the next opener, until they are answered', async () => {
        const place = (to: string | undefined) => coordination.placeRequest(mark, owner, to);
        await open();
        expect(await place('west::p')).to.equal(true);
        expect(await open()).to.deep.equal({ kind: 'in-flight' });
        expect(await place('east::ü')).to.equal(true);
        await coordination.giveUpRequest(mark, owner);

        expect(await open()).to.include({ kind: 'new', place: 'east::ü' });
        await coordination.keepAnswer(mark, owner, 'the answer');
        expect(await open()).to.deep.equal({ kind: 'answered', answer: 'the answer' });
      });

      it('keep their target for the same body only, and until their expiry', async () => {
        await open();
        await coordination.placeRequest(mark, owner, 'west::p');
        await coordination.giveUpRequest(mark, owner);
        expect(await open({ body: 'other' })).to.deep.equal({ kind: 'reused' });
        await under.advance(60_000);

        const opened = await open({ body: 'other' });
        expect(opened).to.include({ kind: 'new' });
        expect(opened).to.not.have.property('place');
      });

      it('can go anywhere once their target is cleared', async () => {
        await open();
        await coordination.placeRequest(mark, owner, 'west::p');
        expect(await coordination.placeRequest(mark, owner, undefined)).to.equal(true);
        await coordination.giveUpRequest(mark, owner);

        const opened = await open({ body: 'other' });
        expect(opened).to.include({ kind: 'new' });
        expect(opened).to.not.have.property('place');
      });

      it('get no target unless they are in flight', async () => {
        expect(await coordination.placeRequest(mark, owner, 'west::p')).to.equal(false);
        await open();
        await coordination.giveUpRequest(mark, owner);
        expect(await coordination.placeRequest(mark, owner, 'west::p')).to.equal(false);

        expect(await open()).to.not.have.property('place');
      });

      it('belong to their opener until they are answered or released', async () => {
        expect(await coordination.confirmRequest(mark)).to.equal(false);
        await open();
        expect(await coordination.confirmRequest(mark)).to.equal(true);
        await coordination.giveUpRequest(mark, owner);
        expect(await coordination.confirmRequest(mark)).to.equal(false);
        await open();
        await coordination.keepAnswer(mark, owner, 'the answer');

        expect(await coordination.confirmRequest(mark)).to.equal(false);
      });

      it('are new once released', async () => {
        await open();
        await coordination.giveUpRequest(mark, owner);
        await coordination.giveUpRequest(mark, owner);

        expect(await open({ body: 'other' })).to.include({ kind: 'new' });
      });

      it('are new after their time', async () => {
        await open();
        await coordination.keepAnswer(mark, owner, 'old');
        await under.advance(50_000);
        expect((await open()).kind).to.equal('answered');
        await under.advance(10_000);

        expect(await open()).to.include({ kind: 'new' });
        await coordination.keepAnswer(mark, owner, 'newer');
        expect(await open()).to.deep.equal({ kind: 'answered', answer: 'newer' });
      });

      it('keep the first answer, and report it to a second writer', async () => {
        const keep = (answer: string) => coordination.keepAnswer(mark, owner, answer);
        await open();
        expect([await keep('first'), await keep('other'), await keep('first')]).to.deep.equal([
          ...[true, false, true],
        ]);
        expect(await open()).to.deep.equal({ kind: 'answered', answer: 'first' });
        expect(await coordination.keepAnswer({ ...mark, body: 'other' }, owner, 'first')).to.equal(
          false,
        );
        await under.advance(60_000);

        expect(await keep('other')).to.equal(true);
        expect(await open()).to.deep.equal({ kind: 'answered', answer: 'other' });
      });

      it('are independent of each other', async () => {
        await open();
        await coordination.keepAnswer(mark, owner, 'mine');

        expect(await open({ key: 'l'.repeat(22) })).to.include({ kind: 'new' });
      });

      it("of a manager's key are exclusive too, and new once released", async () => {
        const byManager = { ...owner, isOfManager: true } as const;
        const opened = async () => (await coordination.openRequest(mark, byManager)).kind;
        expect([await opened(), await opened()]).to.deep.equal(['new', 'in-flight']);
        expect(await coordination.confirmRequest(mark)).to.equal(true);
        await coordination.giveUpRequest(mark, byManager);

        expect(await opened()).to.equal('new');
      });

      it('store no answer that is too long', async () => {
        await open();
        const long = 'x'.repeat(MAX_KEPT_ANSWER + 1);

        expect(await coordination.keepAnswer(mark, owner, long)).to.equal(false);
        expect(await open()).to.include({ kind: 'new' });
      });
    });

    describe('stored answers', () => {
      const bob = { tenant: BOB, ttlMs: 60_000 };
      const alice = { tenant: ALICE, ttlMs: 60_000 };
      const markOf = (key: string) => ({ key: key.padEnd(22, '-'), body: 'b'.repeat(22) });
      const keep = async (keys: string, owner = alice): Promise<void> => {
        for (const key of keys) {
          await coordination.openRequest(markOf(key), owner);
          await coordination.keepAnswer(markOf(key), owner, 'x'.repeat(62_000));
        }
      };
      const kept = async (keys: string, owner = alice): Promise<string> => {
        const found = await Promise.all(
          Array.from(keys, async (key) => {
            const { kind } = await coordination.openRequest(markOf(key), owner);
            if (kind === 'new') await coordination.giveUpRequest(markOf(key), owner);
            return kind === 'answered' ? key : '';
          }),
        );
        return found.join('');
      };

      it('of a tenant beyond its bytes displace only its own oldest', async () => {
        await keep('p', bob);
        await keep('abcde');

        expect(await kept('abcde')).to.equal('cde');
        expect(await kept('p', bob)).to.equal('p');
      });

      it('beyond the total bytes displace the oldest of the largest tenant', async () => {
        await keep('abc');
        await keep('pq', bob);

        await eventually(
          async () => (await kept('a')) === '',
          "the loudest tenant's oldest is gone",
        );
        expect(await kept('bc')).to.equal('bc');
        expect(await kept('pq', bob)).to.equal('pq');
      });

      it('no longer count after their time', async () => {
        await keep('abc');
        await under.advance(60_000);
        await keep('def');

        expect(await kept('def')).to.equal('def');
      });
    });

    describe('activity', () => {
      const id = '0190a000-0000-7000-8000-000000000001';
      const end = { reason: 'deleted', exitCode: null } as const;

      it('counts the claim, and the time of the first observation', async () => {
        const { activeAt: since } = await expiryOf(10_000, 0);
        const claimedAt = since + 5_000;

        expect((await expiryOf(10_000, claimedAt)).activeAt).to.equal(claimedAt);
      });

      it('ends only sandboxes that were idle for their timeout', async () => {
        await expiryOf(60_000, 0);
        await under.advance(50_000);
        expect(
          await coordination.expire(id, { idleTimeoutMs: 60_000, claimedAt: 0 }),
        ).to.have.property('expired', false);
        await under.advance(10_000);

        expect(
          await coordination.expire(id, { idleTimeoutMs: 60_000, claimedAt: 0 }),
        ).to.deep.equal({ expired: true });
      });

      it('postpones the timeout at each event', async () => {
        const { activeAt: since } = await expiryOf(60_000, 0);
        await under.advance(50_000);
        coordination.touch(id, 60_000);
        await eventually(
          async () => (await expiryOf(600_000, 0)).activeAt > since,
          'the touch counts',
        );
        await under.advance(55_000);

        expect(
          await coordination.expire(id, { idleTimeoutMs: 60_000, claimedAt: 0 }),
        ).to.have.property('expired', false);
        await under.advance(5_000);
        expect(
          await coordination.expire(id, { idleTimeoutMs: 60_000, claimedAt: 0 }),
        ).to.deep.equal({ expired: true });
      });

      it('postpones the timeout as long as something runs', async () => {
        const { activeAt: since } = await expiryOf(1_000, 0);
        await under.advance(30_000);
        coordination.work(id, true);
        await eventually(
          async () => (await expiryOf(600_000, 0)).activeAt > since,
          'the work counts',
        );
        for (const ms of [5_000, 30_000]) {
          await under.advance(ms);
          expect((await expiryOf(1_000, 0)).activeAt).to.be.above(since);
        }
        coordination.work(id, false);
        await under.advance(10_000);

        await eventually(
          async () =>
            (await coordination.expire(id, { idleTimeoutMs: 1_000, claimedAt: 0 })).expired,
          'it expires',
        );
      });

      it('remembers the first end of a sandbox for a minute', async () => {
        await under.advance(120_000);
        expect(await coordination.ended(id)).to.equal(undefined);
        await coordination.markEnded(id, end);
        await coordination.markEnded(id, { reason: 'lost', exitCode: 1 });
        await under.advance(55_000);
        expect(await coordination.ended(id)).to.deep.equal(end);
        await under.advance(5_000);

        expect(await coordination.ended(id)).to.equal(undefined);
      });

      const expiryOf = async (idleTimeoutMs: number, claimedAt: number) => {
        const expiry = await coordination.expire(id, { idleTimeoutMs, claimedAt });
        if (expiry.expired) throw new Error('expired');
        return expiry;
      };
    });

    describe('rate limits', () => {
      it('admit a fixed number per window and name', async () => {
        const count = async () => (await coordination.countWithin('a', 2, 60_000)).within;

        expect([await count(), await count(), await count()]).to.deep.equal([true, true, false]);
        expect(await coordination.countWithin('b', 2, 60_000)).to.deep.equal({
          within: true,
          retryAfterMs: 0,
        });
        const { retryAfterMs } = await coordination.countWithin('a', 2, 60_000);
        expect(retryAfterMs).to.be.within(50_000, 60_000);
        await under.advance(60_000);
        expect(await count()).to.equal(true);
      });
    });

    it('keep a rate of one kind, however many names of another kind exist', async () => {
      await coordination.countWithin('kept/a', 1, 60_000);
      await Promise.all(
        Array.from({ length: 10_001 }, (_, n) => coordination.countWithin(`many/${n}`, 1, 1_000)),
      );

      expect((await coordination.countWithin('kept/a', 1, 60_000)).within).to.equal(false);
    });

    describe('leases', () => {
      it('are all held by the only replica, and published to subscribers', async () => {
        const gained = new Set<number>();
        const stop = coordination.follow({
          gained: (shard) => {
            gained.add(shard);
          },
          lost: () => undefined,
        });

        await eventually(() => gained.size === SHARDS, 'all leases');
        stop();
        for (const shard of gained) {
          const lease = coordination.lease(shard);
          expect(lease?.held()).to.equal(true);
          expect(lease?.epoch).to.be.a('number');
        }
        expect(coordination.replicas()).to.have.length(1);
      });
    });

    describe('events', () => {
      const anEvent = (sandboxId: string, owner = ALICE): EventRecord => ({
        at: 5,
        owner,
        poolName: 'default',
        sandboxId,
        reason: 'Claimed',
      });
      const publish = (sandboxId: string, owner = ALICE): Promise<number> =>
        new Promise((resolve) => {
          coordination.publishEvent(anEvent(sandboxId, owner), sandboxId, resolve);
        });
      /** Follows from before it resolves on. */
      const listen = async (owner: Tenant | undefined, after?: string) => {
        const controller = new AbortController();
        const batches: EventBatch[] = [];
        const over = (async () => {
          for await (const batch of coordination.followEvents(owner, after, controller.signal))
            batches.push(batch);
        })();
        const heard = () => batches.flatMap(({ events }) => events);
        await eventually(() => batches.length > 0, 'it follows');
        return {
          batches,
          heard,
          names: () => heard().map(({ event }) => event.sandboxId),
          stop: async () => {
            controller.abort();
            await over;
          },
        };
      };

      it('are published to subscribers in the order of rising numbers', async () => {
        const ears = await listen(undefined);
        const ids = [await publish('a'), await publish('b'), await publish('c', BOB)];
        await eventually(() => ears.heard().length === 3, 'all are heard');
        await ears.stop();

        expect(ears.heard().map(({ id }) => id)).to.deep.equal(ids);
        expect(ears.names()).to.deep.equal(['a', 'b', 'c']);
        expect(ids.every((id, at) => Number.isSafeInteger(id) && id > (ids[at - 1] ?? 0))).to.equal(
          true,
        );
      });

      it("are published to a tenant if they are the tenant's", async () => {
        const [alice, bob] = [await listen(ALICE), await listen(BOB)];
        await publish('a');
        await publish('b', BOB);
        await eventually(() => alice.heard().length === 1 && bob.heard().length === 1, 'both hear');
        await Promise.all([alice.stop(), bob.stop()]);

        expect([alice.names(), bob.names()]).to.deep.equal([['a'], ['b']]);
      });

      it('start at a number, or at the current one without a number', async () => {
        const first = await publish('a');
        await publish('b');
        const [after, now] = [await listen(ALICE, String(first)), await listen(ALICE)];
        await eventually(() => after.heard().length === 1, 'what was missed is heard');
        await publish('c');
        await eventually(
          () => after.heard().length === 2 && now.heard().length === 1,
          'both go on',
        );
        await Promise.all([after.stop(), now.stop()]);

        expect([after.names(), now.names()]).to.deep.equal([['b', 'c'], ['c']]);
        expect([...after.batches, ...now.batches].some(({ missed }) => missed)).to.equal(false);
      });

      it('that are no longer stored are reported as missed once', async () => {
        await publish('a');
        for (const after of ['1', 'x', '9007199254740993']) {
          const ears = await listen(ALICE, after);
          await publish(`b${after}`);
          await eventually(() => ears.names().includes(`b${after}`), 'it goes on');
          await ears.stop();

          expect(ears.batches.map(({ missed }) => missed)).to.deep.equal([
            true,
            ...ears.batches.slice(1).map(() => false),
          ]);
        }
      });

      it('are followed until an abort', async () => {
        const controller = new AbortController();
        const following = coordination.followEvents(ALICE, undefined, controller.signal);
        expect(await following.next())
          .to.have.nested.property('value.begins')
          .that.is.a('number');
        const next = following.next();
        controller.abort();

        expect(await next).to.deep.equal({ done: true, value: undefined });
      });
    });

    it('reports no problems and no warnings', () => {
      expect(coordination.describe()).to.deep.equal({ problems: [], warnings: [] });
    });
  });
};

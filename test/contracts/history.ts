import { expect } from 'chai';
import { v7 } from 'uuid';
import type { FinishedFilter, History } from '../../src/contracts/history.ts';
import type { EventRecord } from '../../src/model/event.ts';
import type { FinishedSandbox } from '../../src/model/sandbox.ts';
import type { CompletedDecision } from '../../src/model/envs/scaling-decision.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { fewAtOnce } from '../support/harness/few-at-once.ts';

export interface HistoryUnderTest {
  readonly history: History;
  close(): Promise<void>;
}

const BOB: Tenant = { namespace: 'alpha', team: 'alpha', user: 'bob' };
const CAROL: Tenant = { namespace: 'beta', team: 'beta', user: 'carol' };

/** 2023-11-14 */
const T0 = 1_700_000_000_000;

/** Bounds of a history that nothing meets. */
export const MANY_BYTES = { totalBytes: 1e12, tenantBytes: 1e12 };

export const aFinished = (part: Partial<FinishedSandbox> = {}): FinishedSandbox => ({
  id: v7(),
  poolUid: 'pool-uid',
  poolName: 'default',
  owner: ALICE,
  claimedAt: T0,
  startedAt: T0 - 500,
  terminatedAt: T0 + 60_000,
  recycledAt: T0 + 60_100,
  cpu: '1',
  memory: '128Mi',
  containerImages: { main: 'host' },
  endReason: 'deleted',
  exitCode: null,
  ...part,
});

/** Some at a time: of thousands at once the last would wait longer than one may. */
export const recordAll = async (
  history: History,
  finished: readonly FinishedSandbox[],
): Promise<void> => {
  await fewAtOnce(finished.length, (n) => history.record(finished[n]!));
};

/** What every history promises. `make` gives an empty one that keeps all. */
export const historySuite = (name: string, make: () => Promise<HistoryUnderTest>): void => {
  describe(`History: ${name}`, () => {
    let under: HistoryUnderTest;
    let history: History;
    const open = async () => {
      under = await make();
      history = under.history;
    };
    const record = (finished: readonly FinishedSandbox[]) => recordAll(history, finished);
    const idsOf = async (filter: FinishedFilter, page = { offset: 0, limit: 1_000 }) => {
      const { items, total } = await history.list(filter, page);
      return { ids: items.map(({ id }) => id), total };
    };

    describe('one by one', () => {
      beforeEach(open);
      afterEach(() => under.close());

      it('is empty at first', async () => {
        expect(await history.list({}, { offset: 0, limit: 20 })).to.deep.equal({
          items: [],
          total: 0,
        });
      });

      it('returns a recorded sandbox completely', async () => {
        const finished = aFinished({
          exitCode: 137,
          endReason: 'killed',
          containerImages: { main: 'ä"', side: 'x' },
        });

        await history.record(finished);

        expect(await history.list({}, { offset: 0, limit: 20 })).to.deep.equal({
          items: [finished],
          total: 1,
        });
      });

      it('keeps an unknown start as unknown', async () => {
        await history.record(aFinished({ startedAt: undefined }));

        const [item] = (await history.list({}, { offset: 0, limit: 1 })).items;

        expect(item?.startedAt).to.equal(undefined);
      });

      it('counts an id once, and keeps its first record', async () => {
        const first = aFinished();
        await history.record(first);

        await record([
          { ...first, endReason: 'lost' },
          { ...first, owner: CAROL, poolName: 'other' },
        ]);

        expect(await history.list({}, { offset: 0, limit: 20 })).to.deep.equal({
          items: [first],
          total: 1,
        });
        expect(await history.list({ owner: CAROL }, { offset: 0, limit: 20 })).to.deep.equal({
          items: [],
          total: 0,
        });
      });

      it('counts its entries by namespace, each id once', async () => {
        expect(await history.countByNamespace()).to.deep.equal(new Map());
        const first = aFinished();

        await record([
          first,
          aFinished({ owner: BOB, poolName: 'other' }),
          aFinished({ owner: CAROL }),
          first,
        ]);

        expect(await history.countByNamespace()).to.deep.equal(
          new Map([
            ['alpha', 2],
            ['beta', 1],
          ]),
        );
      });

      it('finds an entry by its id', async () => {
        const finished = aFinished();
        await record([finished, aFinished()]);

        expect(await history.find(finished.id)).to.deep.equal(finished);
        expect(await history.find(v7())).to.equal(undefined);
      });

      it('keeps the newest 50 events of a sandbox, each once, in order', async () => {
        const event = (n: number): EventRecord => ({
          at: T0 + n,
          owner: ALICE,
          poolName: 'default',
          sandboxId: 'one',
          reason: 'IdleTimeoutChanged',
          idleTimeoutMs: n,
        });
        const all = Array.from({ length: 60 }, (_, n) => ({ id: T0 * 1_000 + n, event: event(n) }));
        await history.recordEvents(all.slice(30));
        await history.recordEvents(all.slice(0, 40));
        await history.recordEvents([
          { id: 7, event: { ...event(1), sandboxId: 'two', reason: 'Ready' } },
        ]);

        expect(await history.eventsOf('one')).to.deep.equal(
          all.slice(10).map((numbered) => numbered.event),
        );
        expect((await history.eventsOf('two')).map(({ reason }) => reason)).to.deep.equal([
          'Ready',
        ]);
        expect(await history.eventsOf(v7())).to.deep.equal([]);
      });

      const ofPool = (n: number, poolName: string): { id: number; event: EventRecord } => ({
        id: T0 * 1_000 + n,
        event: { at: T0 + n, owner: ALICE, poolName, reason: 'Resized', from: n, to: n + 1 },
      });

      it('keeps the newest 50 events of a pool, each once, in order', async () => {
        const all = Array.from({ length: 60 }, (_, n) => ofPool(n, 'shells'));
        await history.recordEvents(all.slice(30));
        await history.recordEvents(all.slice(0, 40));
        await history.recordEvents([ofPool(100, 'others')]);

        expect(await history.eventsOfPool(ALICE.namespace, 'shells')).to.deep.equal(
          all.slice(10).map(({ event }) => event),
        );
        expect(await history.eventsOfPool(ALICE.namespace, 'others')).to.have.length(1);
        expect(await history.eventsOfPool('elsewhere', 'shells')).to.deep.equal([]);
      });

      it("keeps the events of an owner's 100 pools with the latest events", async () => {
        for (let n = 0; n < 102; n += 1) await history.recordEvents([ofPool(n, `pool-${n}`)]);
        await history.recordEvents([ofPool(200, 'pool-2'), ofPool(201, 'pool-new')]);

        const kept = async (name: string): Promise<number> =>
          (await history.eventsOfPool(ALICE.namespace, name)).length;
        expect(await Promise.all(['pool-0', 'pool-1', 'pool-3'].map(kept))).to.deep.equal([
          0, 0, 0,
        ]);
        expect(await Promise.all(['pool-2', 'pool-4', 'pool-new'].map(kept))).to.deep.equal([
          2, 1, 1,
        ]);
      });

      it('drops no events of another owner for those', async () => {
        const ofBob = { ...ofPool(1, 'pool-0').event, owner: { ...ALICE, user: 'bob' } };
        await history.recordEvents([ofPool(0, 'pool-0'), { id: ofPool(1, '').id, event: ofBob }]);
        for (let n = 2; n < 103; n += 1) await history.recordEvents([ofPool(n, `pool-${n}`)]);

        expect(await history.eventsOfPool(ALICE.namespace, 'pool-0')).to.deep.equal([ofBob]);
      });

      it('keeps the newest 100 decisions of a group, newest first, in their latest version', async () => {
        const decision = (id: number, reason = ''): CompletedDecision => ({
          id,
          at: id,
          cause: 'demand',
          changes: [{ member: 'a', from: 1, to: 2 }],
          seen: { desired: 1, running: 1, idle: 0, starting: 0, pending: 2 },
          wanted: 4,
          reason,
          limitedBy: [],
          outcomes: { a: { kind: 'done' } },
        });
        const of = { envUid: v7(), group: 'g' };
        for (let n = 0; n < 105; n++) await history.recordDecision(of, decision(T0 + n));
        await history.recordDecision(of, decision(T0 + 104, 'again'));
        await history.recordDecision({ ...of, group: 'h' }, decision(T0));

        const kept = await history.decisionsOf(of);
        expect(kept.map(({ id }) => id)).to.deep.equal(
          Array.from({ length: 100 }, (_, n) => T0 + 104 - n),
        );
        expect(kept[0]).to.deep.equal(decision(T0 + 104, 'again'));
        expect(await history.decisionsOf({ ...of, group: 'h' })).to.have.length(1);
        expect(await history.decisionsOf({ ...of, envUid: v7() })).to.deep.equal([]);
      });

      it('lists the newest claim first, in any order of ends and records', async () => {
        const late = aFinished({ claimedAt: T0 + 3, terminatedAt: T0 + 10 });
        const early = aFinished({ claimedAt: T0 + 1, terminatedAt: T0 + 99 });
        const middle = aFinished({ claimedAt: T0 + 2, terminatedAt: T0 + 50 });

        await record([middle, late, early]);

        expect((await idsOf({})).ids).to.deep.equal([late.id, middle.id, early.id]);
      });

      it('lists the higher id first among simultaneous claims', async () => {
        const same = Array.from({ length: 5 }, () => aFinished());
        await record(same.toReversed());

        expect((await idsOf({})).ids).to.deep.equal(
          same
            .map(({ id }) => id)
            .toSorted()
            .toReversed(),
        );
      });

      it('returns only the total for a limit of 0, and for an offset past the end', async () => {
        await record([aFinished(), aFinished()]);

        expect(await history.list({}, { offset: 0, limit: 0 })).to.deep.equal({
          items: [],
          total: 2,
        });
        expect(await history.list({}, { offset: 2, limit: 20 })).to.deep.equal({
          items: [],
          total: 2,
        });
        expect(await history.list({}, { offset: 999_999_999, limit: 20 })).to.deep.equal({
          items: [],
          total: 2,
        });
      });

      it('pages exactly through thousands, even with few matches', async () => {
        const rows = Array.from({ length: 6_000 }, (_, n) =>
          aFinished({
            claimedAt: T0 + n,
            terminatedAt: T0 + n + 1,
            poolName: n % 1_000 === 0 ? 'rare' : 'default',
          }),
        );
        const oldest = aFinished({ claimedAt: T0 - 1, terminatedAt: T0 + 10_000, poolName: 'old' });
        await record([...rows, oldest]);

        const deep = await idsOf(
          { owner: ALICE, poolName: 'default' },
          { offset: 5_000, limit: 900 },
        );
        expect(deep.total).to.equal(5_994);
        expect(deep.ids).to.deep.equal(
          rows
            .filter(({ poolName }) => poolName === 'default')
            .toReversed()
            .slice(5_000, 5_900)
            .map(({ id }) => id),
        );
        expect((await idsOf({ poolName: 'rare' })).ids).to.deep.equal(
          [5, 4, 3, 2, 1, 0].map((n) => rows[n * 1_000]?.id),
        );
        expect((await idsOf({ poolName: 'rare' }, { offset: 4, limit: 1 })).ids).to.deep.equal([
          rows[1_000]?.id,
        ]);
        expect(await idsOf({ owner: ALICE, since: T0 + 10_000 })).to.deep.equal({
          ids: [oldest.id],
          total: 1,
        });
      });

      it('finds a page at a high offset exactly, for any times of claims and durations', async () => {
        const day = 86_400_000;
        // spread, with some close together
        const moment = (n: number): number => T0 + ((n * 7_919_317) % (2 * day)) - ((n * n) % 400);
        const rows = Array.from({ length: 3_000 }, (_, n) => {
          const claimedAt = n % 7 === 0 ? T0 + 12_345_678 : moment(n);
          return aFinished({
            claimedAt,
            terminatedAt: claimedAt + ((n * 104_729) % (n % 3 === 0 ? day : 60_000)),
            poolName: n % 5 === 0 ? 'big' : 'default',
            owner: n % 2 === 0 ? ALICE : BOB,
          });
        });
        await record(rows);
        for (const filter of [
          { owner: ALICE },
          { owner: ALICE, poolName: 'default', since: T0 + day },
          { since: T0 + day },
          { owner: BOB, since: T0 + day + 1_048_576 },
        ]) {
          const wanted = rows
            .filter(
              (row) =>
                row.terminatedAt >= (filter.since ?? 0) &&
                (!filter.owner || row.owner === filter.owner) &&
                (!('poolName' in filter) || row.poolName === filter.poolName),
            )
            .toSorted((a, b) => b.claimedAt - a.claimedAt || (a.id < b.id ? 1 : -1))
            .map(({ id }) => id);
          for (const offset of [199, 200, 201, 347, 500, wanted.length - 60, wanted.length - 1]) {
            expect([filter, offset, await idsOf(filter, { offset, limit: 20 })]).to.deep.equal([
              filter,
              offset,
              { ids: wanted.slice(offset, offset + 20), total: wanted.length },
            ]);
          }
        }
      });
    });

    describe('a filtered page', () => {
      const rows = [ALICE, BOB, CAROL].flatMap((owner, o) =>
        ['default', 'big'].flatMap((poolName, p) =>
          [0, 1, 2].map((n) =>
            aFinished({
              owner,
              poolName,
              claimedAt: T0 + n * 10 + o,
              terminatedAt: T0 + n * 1_000_000 + p,
            }),
          ),
        ),
      );
      const cases: readonly FinishedFilter[] = [
        {},
        { owner: ALICE },
        { owner: BOB, poolName: 'big' },
        { owner: ALICE, since: T0 + 1_000_000 },
        { owner: ALICE, poolName: 'big', since: T0 + 1_000_001 },
        { owner: ALICE, since: T0 + 1 },
        { owner: ALICE, team: 'alpha' },
        { owner: ALICE, team: 'beta' },
        { namespace: 'alpha' },
        { team: 'beta' },
        { user: 'bob' },
        { namespace: 'alpha', user: 'carol' },
        { namespace: 'alpha', team: 'alpha', user: 'bob' },
        { poolName: 'big' },
        { poolName: 'none' },
        { namespace: 'beta', poolName: 'default' },
        { since: T0 + 1_000_000 },
        { since: T0 + 1_000_001 },
        { since: T0 + 9_000_000 },
        { namespace: 'alpha', since: T0 + 2_000_000 },
        { team: 'alpha', poolName: 'big', since: T0 + 1_000_001 },
        { since: 0 },
      ];
      const matches =
        ({ owner, since, ...rest }: FinishedFilter) =>
        (row: FinishedSandbox): boolean =>
          [owner ?? {}, rest].every((wanted) =>
            Object.entries(wanted).every(
              ([field, value]) =>
                (field === 'poolName'
                  ? row.poolName
                  : Object.entries(row.owner).find(([part]) => part === field)?.[1]) === value,
            ),
          ) && row.terminatedAt >= (since ?? 0);

      before(async () => {
        await open();
        await record(rows);
      });
      after(() => under.close());

      for (const filter of cases) {
        it(`returns exactly the matches of ${JSON.stringify(filter)}, in pages`, async () => {
          const wanted = rows
            .filter(matches(filter))
            .toSorted((a, b) => b.claimedAt - a.claimedAt || (a.id < b.id ? 1 : -1))
            .map(({ id }) => id);

          expect(await idsOf(filter)).to.deep.equal({ ids: wanted, total: wanted.length });
          const pages: string[] = [];
          for (let offset = 0; offset <= wanted.length; offset += 2) {
            const { ids, total } = await idsOf(filter, { offset, limit: 2 });
            expect(total).to.equal(wanted.length);
            pages.push(...ids);
          }
          expect(pages).to.deep.equal(wanted);
        });
      }
    });
  });
};

import { expect } from 'chai';
import fc from 'fast-check';
import { v7 } from 'uuid';
import { SandboxIndex } from '../../src/actors/sandbox/sandbox-index.ts';
import type { SandboxSnapshot } from '../../src/actors/sandbox/sandbox-snapshot.ts';
import type { Supervisor } from '../../src/actors/sandbox/supervisor.ts';
import type { History } from '../../src/contracts/history.ts';
import type { FinishedSandbox } from '../../src/model/sandbox.ts';
import { listSandboxes } from '../../src/actors/sandbox/commands/list-sandboxes.ts';
import { aFinished } from '../contracts/history.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { runs } from '../support/harness/runs.ts';

const CALLER = { ...ALICE, role: 'user' as const, keyId: 'k' };

/** Lists over as many live and finished sandboxes, claimed at these moments. */
const aList = (live: readonly number[], finished: readonly number[]) => {
  const index = new SandboxIndex();
  const snapshots = new Map<string, SandboxSnapshot>();
  for (const claimedAt of live) {
    const id = v7();
    index.place({
      id,
      status: 'Running',
      poolUid: 'p',
      poolName: 'default',
      updateRevision: 'r1',
      owner: ALICE,
      createdAt: 0,
      claimedAt,
      availableAt: 1,
    });
    const claim = { owner: ALICE, claimedAt, idleTimeoutMs: 0, maxLifetimeMs: 0 };
    snapshots.set(id, {
      state: 'running',
      path: 'running',
      status: 'Running',
      context: {
        record: {
          id,
          poolName: 'default',
          poolOwner: ALICE,
          claim,
          revision: '1',
          cpu: '1',
          memory: '1Mi',
          containerImages: {},
        },
      },
    } as unknown as SandboxSnapshot);
  }
  const rows: FinishedSandbox[] = finished.map((claimedAt) =>
    aFinished({ claimedAt, owner: ALICE }),
  );
  const sorted = rows.toSorted((a, b) => b.claimedAt - a.claimedAt || (a.id < b.id ? 1 : -1));
  const read: number[] = [];
  const history: History = {
    record: async () => {},
    find: async () => undefined,
    list: async (_filter, { offset, limit }) => {
      read.push(limit);
      return { items: sorted.slice(offset, offset + limit), total: sorted.length };
    },
  } as Partial<History> as History;
  const supervisor = { index, sandbox: (id: string) => snapshots.get(id) } as unknown as Supervisor;
  const list = listSandboxes({ supervisor, history, clock: new TestClock(), listWindowMs: 0 });
  const all = [
    ...[...snapshots].map(([id, { context }]) => ({
      id,
      at: context.record?.claim?.claimedAt ?? 0,
    })),
    ...rows.map(({ id, claimedAt }) => ({ id, at: claimedAt })),
  ]
    .sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
    .map(({ id }) => id);
  return {
    all,
    read,
    page: (offset: number, limit: number) => list(CALLER, {}, { offset, limit }),
  };
};

describe('a page of live and finished sandboxes', () => {
  it('equals a slice of the sorted list, at any offset and in any distribution', async () => {
    const moments = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 450 });
    await fc.assert(
      fc.asyncProperty(
        moments,
        moments,
        fc.integer({ min: 0, max: 900 }),
        fc.integer({ min: 1, max: 40 }),
        async (live, finished, offset, limit) => {
          const { all, page } = aList(live, finished);

          const { items, total } = await page(offset, limit);

          expect(items.map(({ id }) => id)).to.deep.equal(all.slice(offset, offset + limit));
          expect(total).to.equal(all.length);
        },
      ),
      { numRuns: runs(200) },
    );
  });

  it('reads only itself at a high offset if the live sandboxes are the newest', async () => {
    const { all, page, read } = aList(
      Array.from({ length: 300 }, (_, n) => 10_000 + n),
      Array.from({ length: 2_000 }, (_, n) => n),
    );

    expect((await page(2_280, 20)).items.map(({ id }) => id)).to.deep.equal(
      all.slice(2_280, 2_300),
    );
    expect((await page(250, 20)).items.map(({ id }) => id)).to.deep.equal(all.slice(250, 270));
    expect(read).to.deep.equal([20, 1]);
  });
});

import { expect } from 'chai';
import { SWEEP_PAUSE_MS } from '../../../src/contracts/retention.ts';
import { sqliteHistory, SWEEP_ROWS } from '../../../src/embedded/store/history.ts';
import { aFinished, historySuite, MANY_BYTES } from '../../contracts/history.ts';
import type { Tenant } from '../../../src/model/tenant.ts';
import { ALICE } from '../../support/builders/instance-orders.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { aDatabase, type OpenFile } from './a-database.ts';
import { directly } from './directly.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

const RETENTION_MS = 3_600_000;
const BOB = { ...ALICE, user: 'bob' };

historySuite('SQLite', async () => {
  const { database, clock, close } = await aDatabase();
  return {
    history: sqliteHistory(database, {
      metrics: silentMetrics,
      clock,
      log: quietLog,
      retentionMs: RETENTION_MS,
      bounds: MANY_BYTES,
    }),
    close,
  };
});

describe('retention of the history', () => {
  let file: OpenFile;
  const make = () =>
    sqliteHistory(file.database, {
      metrics: silentMetrics,
      clock: file.clock,
      log: quietLog,
      retentionMs: RETENTION_MS,
      bounds: MANY_BYTES,
    });

  beforeEach(async () => {
    file = await aDatabase();
  });
  afterEach(() => file.close());

  /**
   * Moves the clock past the next step, and waits until that step has armed the one after it, if it
   * does.
   */
  const step = async (ms: number) => {
    const before = await file.database.run('history.totalOfAny', null, null, null, null, 0);
    file.clock.advance(ms);
    // behind the step's own call
    const after = await file.database.run('history.totalOfAny', null, null, null, null, 0);
    return Number(before[0]?.[0]) - Number(after[0]?.[0]);
  };

  it('keeps the events of a pool while a pool of that name exists, and then for the retention time', async () => {
    const history = make();
    const { database, clock } = file;
    const old = Date.now() - RETENTION_MS - 60_000;
    clock.advance(Date.now() - clock.now());
    const tell = async (poolName: string, id: number) => {
      const event = { at: old, owner: ALICE, poolName, reason: 'Recovered' } as const;
      await history.recordEvents([{ id, event }]);
    };
    const kept = async (name: string) => (await history.eventsOfPool(ALICE.namespace, name)).length;
    const create = (uid: string, name: string) =>
      database.run('pools.create', uid, ALICE.namespace, name, '{}');
    await create('a', 'lives');
    const [[revision] = []] = await create('b', 'ends');
    for (const [n, name] of ['lives', 'ends', 'gone'].entries()) await tell(name, n + 1);
    await database.run('pools.remove', 'b', revision ?? 0);

    history.start();
    await step(0);
    expect(await Promise.all(['lives', 'ends', 'gone'].map(kept))).to.deep.equal([1, 1, 0]);
    await create('c', 'ends');
    await step(2 * RETENTION_MS);
    expect(await Promise.all(['lives', 'ends'].map(kept))).to.deep.equal([1, 1]);
    await history.stop();
  });

  it('deletes entries older than the retention time in small steps, and keeps the rest', async () => {
    const history = make();
    const old = file.clock.now() - RETENTION_MS - 1;
    const rows = Array.from({ length: 2 * SWEEP_ROWS + 50 }, (_, n) =>
      aFinished({ terminatedAt: old - n, poolName: `p${n % 3}` }),
    );
    const claims = () =>
      file.database.run('history.seekOfAny', null, null, null, null, 0, Number.MAX_SAFE_INTEGER);
    const kept = aFinished({
      claimedAt: old - 9,
      terminatedAt: file.clock.now() - RETENTION_MS + 10_000,
    });
    await Promise.all([...rows, kept].map((row) => history.record(row)));

    history.start();
    const steps = [await step(0), await step(1_000), await step(1_000), await step(1_000)];
    await history.stop();

    expect(steps).to.deep.equal([SWEEP_ROWS, SWEEP_ROWS, 50, 0]);
    expect((await claims())[0]?.[1]).to.equal(1); // of the one that is left
    expect(await history.list({}, { offset: 0, limit: 20 })).to.deep.equal({
      items: [kept],
      total: 1,
    });
    expect(await history.list({ poolName: 'p1' }, { offset: 0, limit: 20 })).to.deep.equal({
      items: [],
      total: 0,
    });
    expect(await history.countByNamespace()).to.deep.equal(new Map([['alpha', 1]]));
  });

  it("deletes early what exceeds an owner's bytes, including events, and nothing of others", async () => {
    const history = sqliteHistory(file.database, {
      metrics: silentMetrics,
      clock: file.clock,
      log: quietLog,
      retentionMs: RETENTION_MS,
      bounds: { totalBytes: 1e9, tenantBytes: 600_000 },
    });
    const now = file.clock.now();
    const loud = Array.from({ length: 2 * SWEEP_ROWS }, (_, n) =>
      aFinished({ claimedAt: now, terminatedAt: now + n }),
    );
    const event = {
      at: now,
      owner: ALICE,
      poolName: 'default',
      reason: 'Unhealthy',
      why: 'x'.repeat(4_000),
    } as const;
    const quiet = aFinished({ owner: BOB, claimedAt: now - 9, terminatedAt: now - 9 });
    await Promise.all([quiet, ...loud].map((row) => history.record(row)));
    history.start();
    const early = await step(0);
    await history.recordEvents(
      loud.map(({ id }, n) => ({ id: n, event: { ...event, sandboxId: id } })),
    );
    const steps = [await step(SWEEP_PAUSE_MS), await step(1_000), await step(1_000)];
    await history.stop();

    expect([early, ...steps]).to.deep.equal([0, SWEEP_ROWS, 0, 0]);
    expect(await history.find(loud[SWEEP_ROWS - 1]?.id ?? '')).to.equal(undefined);
    expect(await history.find(loud[SWEEP_ROWS]?.id ?? '')).not.to.equal(undefined);
    expect(await history.find(quiet.id)).to.deep.equal(quiet);
  });

  it('deletes entries of the largest owner if the total is too large, and updates the count', async () => {
    const history = sqliteHistory(file.database, {
      metrics: silentMetrics,
      clock: file.clock,
      log: quietLog,
      retentionMs: RETENTION_MS,
      bounds: { totalBytes: 200_000, tenantBytes: 1e9 },
    });
    const now = file.clock.now();
    const wide = (owner: Tenant, n: number) =>
      aFinished({ owner, claimedAt: now, terminatedAt: now + n, cpu: 'x'.repeat(1_000) });
    const quiet = Array.from({ length: 20 }, () => wide(BOB, -9));
    for (let n = 0; n < 150; n++) await history.record(wide(ALICE, n));
    await Promise.all(quiet.map((row) => history.record(row)));
    history.start();
    const steps = [await step(0), await step(1_000)];
    await Promise.all(Array.from({ length: 30 }, (_, n) => history.record(wide(ALICE, 200 + n))));
    steps.push(await step(SWEEP_PAUSE_MS));
    await history.stop();

    expect(steps).to.deep.equal([SWEEP_ROWS, 0, 0]);
    expect((await history.list({ owner: BOB }, { offset: 0, limit: 1 })).total).to.equal(20);
  });

  it('starts early if much was recorded', async () => {
    const history = make();
    history.start();
    await step(0);
    await Promise.all(
      Array.from({ length: 200 }, () => history.record(aFinished({ terminatedAt: 5 }))),
    );

    expect(await step(0)).to.equal(SWEEP_ROWS);
    await history.stop();
  });

  it('repeats as time goes by', async () => {
    const history = make();
    await history.record(aFinished({ terminatedAt: file.clock.now() }));
    history.start();

    const early = await step(RETENTION_MS);
    const late = await step(SWEEP_PAUSE_MS);
    await history.stop();

    expect([early, late]).to.deep.equal([0, 1]);
  });

  it('deletes nothing once it is stopped', async () => {
    const history = make();
    await history.record(aFinished({ terminatedAt: 5 }));
    history.start();
    await history.stop();

    expect(await step(2 * SWEEP_PAUSE_MS)).to.equal(0);
  });

  it('deletes nothing more if it is stopped during a step', async () => {
    const history = make();
    history.start();
    file.clock.advance(0);
    await history.stop();
    await history.record(aFinished({ terminatedAt: 5 }));

    expect(await step(2 * SWEEP_PAUSE_MS)).to.equal(0);
  });

  it('leaves no group, count or event behind with the last row', async () => {
    const history = make();
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        history.record(aFinished({ terminatedAt: 5 + n * 300_000, poolName: `p${n % 4}` })),
      ),
    );
    const [one] = (await history.list({}, { offset: 0, limit: 1 })).items;
    await history.recordEvents([
      {
        id: 1,
        event: {
          at: 1,
          owner: ALICE,
          poolName: 'default',
          sandboxId: one?.id ?? '',
          reason: 'Ready',
        },
      },
    ]);
    history.start();
    await step(0);
    await history.stop();
    await file.database.close();

    const left = directly(file.path, (connection) =>
      ['history', 'history_groups', 'history_counts', 'history_namespaces', 'sandbox_events'].map(
        (table) => connection.prepare(`SELECT * FROM ${table}`).all().length,
      ),
    );

    expect(left).to.deep.equal([0, 0, 0, 0, 0]);
  });
});

describe('a page of the history', () => {
  let file: OpenFile;
  beforeEach(async () => {
    file = await aDatabase();
  });
  afterEach(() => file.close());

  it('needs no further read after the last match, and never reads many rows at once', async () => {
    const history = sqliteHistory(file.database, {
      metrics: silentMetrics,
      clock: file.clock,
      log: quietLog,
      retentionMs: RETENTION_MS,
      bounds: MANY_BYTES,
    });
    await Promise.all(
      Array.from({ length: 6_500 }, (_, n) =>
        history.record(
          aFinished({
            claimedAt: n,
            terminatedAt: n,
            poolName: n % 3_000 === 499 ? 'rare' : 'default',
          }),
        ),
      ),
    );
    const run = file.database.run.bind(file.database);
    const entries: number[] = [];
    file.database.run = (statement, ...parameters) => {
      if (statement === 'history.walkOfOwner') entries.push(Number(parameters[7]));
      return run(statement, ...parameters);
    };
    const page = { offset: 0, limit: 1_000 };

    expect((await history.list({ owner: ALICE, since: 6_400 }, page)).items).to.have.length(100);
    expect(entries).to.have.length(1);
    expect(
      (await history.list({ owner: ALICE, poolName: 'rare', since: 3_000 }, page)).items,
    ).to.have.length(2);
    expect(entries).to.have.length(3);
    expect(Math.max(...entries)).to.be.at.most(2_000);
  });
});

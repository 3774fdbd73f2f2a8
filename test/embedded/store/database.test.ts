import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RecordConflict, OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import { CALL_DEADLINE_MS, openDatabase } from '../../../src/embedded/store/database.ts';
import {
  DatabaseRefused,
  ensureSchema,
  SCHEMA_VERSION,
} from '../../../src/embedded/store/schema.ts';
import { STATEMENTS } from '../../../src/embedded/store/database-statements.ts';
import { sqliteInstanceRecords } from '../../../src/embedded/store/sqlite-instance-records.ts';
import { Refusal } from '../../../src/model/refusals.ts';
import { aDefinition, anOrder } from '../../support/builders/instance-orders.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { skipBecause } from '../../support/harness/skip-because.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { aDatabase, aFolder, type OpenFile } from './a-database.ts';
import { aWriter, type Writer } from './a-writer.ts';
import { directly } from './directly.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

/** No commit takes so long, whatever the disk has to do. */
const NEVER_MS = 1_000_000;

describe('the database', () => {
  let folder: string;
  let path: string;
  let file: OpenFile | undefined;
  let writer: Writer | undefined;
  const copies: string[] = [];

  beforeEach(() => {
    folder = aFolder();
    path = join(folder, 'sandpool.db');
  });
  afterEach(async () => {
    await writer?.kill();
    await file?.close();
    for (const each of [folder, ...copies.splice(0)])
      rmSync(each, { recursive: true, force: true });
    [writer, file] = [undefined, undefined];
  });

  const open = async (options: Parameters<typeof aDatabase>[0] = {}, inFolder = folder) => {
    file = await aDatabase(options, inFolder);
    return { ...file, records: sqliteInstanceRecords(file.database) };
  };
  const refusal = async (): Promise<DatabaseRefused> => {
    const attempt = openDatabase(path, {
      metrics: silentMetrics,
      log: quietLog,
      clock: new TestClock(),
    });
    const error = await rejection(attempt.then((opened) => opened.close()));
    expect(error).to.be.instanceOf(DatabaseRefused);
    return error instanceof DatabaseRefused ? error : expect.fail();
  };
  const aLaunchOrder = () => {
    const { record, definition } = anOrder();
    return { record, definition };
  };

  it('hides its files from other users', async () => {
    const { records } = await open();
    const { record, definition } = aLaunchOrder();
    await records.launchOrder(record, definition);

    for (const name of [path, `${path}-wal`])
      expect((statSync(name).mode & 0o777).toString(8)).to.equal('600');
  });

  it('has all its content after it was closed and opened again', async () => {
    const { records, database } = await open();
    const { record, definition } = aLaunchOrder();
    const born = await records.launchOrder(record, definition);
    await database.close();

    expect(await (await open()).records.all()).to.deep.equal([{ record: born, definition }]);
  });

  it('finishes pending calls when it is closed, and refuses later ones', async () => {
    const { records, database } = await open();
    const orders = Array.from({ length: 50 }, aLaunchOrder);

    const written = Promise.all(
      orders.map(({ record, definition }) => records.launchOrder(record, definition)),
    );
    const closed = database.close();

    expect(await rejection(records.all()))
      .to.be.instanceOf(Refusal)
      .with.property('code', 'UNAVAILABLE');
    expect(await written).to.have.length(50);
    await Promise.all([closed, database.close()]);
    expect(await (await open()).records.all()).to.have.length(50);
  });

  it('isolates a failing statement from the others of its batch', async () => {
    const { records, database } = await open();
    const orders = Array.from({ length: 20 }, aLaunchOrder);

    const outcomes = await Promise.allSettled(
      orders.map(({ record, definition }, index) =>
        index % 2 === 0
          ? records.launchOrder(record, definition)
          : database.run('instances.birth', record.id, null, '{}'),
      ),
    );

    expect(outcomes.map(({ status }) => status)).to.deep.equal(
      orders.map((_, index) => (index % 2 === 0 ? 'fulfilled' : 'rejected')),
    );
    const faults = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason] : [],
    );
    for (const fault of faults)
      expect(fault).to.be.instanceOf(Error).and.not.instanceOf(OutcomeUnknown);
    expect((await records.all()).map(({ record }) => record.id)).to.have.members(
      orders.filter((_, index) => index % 2 === 0).map(({ record }) => record.id),
    );
  });

  it('returns the error of a single failing statement, and continues', async () => {
    const { records, database } = await open();

    expect(await rejection(database.run('instances.birth', 'x', null, '{}')))
      .to.have.property('message')
      .that.includes('instances.birth');
    expect(
      await rejection(database.run('instances.birth', 'x', '{}', undefined as never)),
    ).to.be.instanceOf(Error);
    expect(await records.all()).to.deep.equal([]);
  });

  it('refuses calls beyond the maximum queue, and accepts them once some are answered', async () => {
    const { database } = await open({ maxCalls: 3 });
    const three = Array.from({ length: 3 }, () => database.run('templates.list'));

    expect(await rejection(database.run('templates.list')))
      .to.be.instanceOf(Refusal)
      .with.property('code', 'UNAVAILABLE');
    await Promise.all(three);

    expect(await database.run('templates.list')).to.deep.equal([]);
  });

  it('yields to the event loop between the answers of a commit', async () => {
    const { records } = await open();
    let rounds = 0;
    let isOver = false;
    const count = (): void => {
      rounds += 1;
      if (!isOver) setImmediate(count);
    };
    const began = Promise.all(
      Array.from({ length: 20 }, async () => {
        const { record, definition } = aLaunchOrder();
        await records.launchOrder(record, definition);
        const until = performance.now() + 3;
        while (performance.now() < until);
        return rounds;
      }),
    );
    setImmediate(count);
    const [first = 0, ...others] = await began;
    isOver = true;
    expect((others.at(-1) ?? 0) - first).to.be.at.least(9);
  });

  it('reports an unknown outcome if no answer comes in time, and continues', async () => {
    const { records, clock } = await open();
    const { record, definition } = aLaunchOrder();

    const early = records.launchOrder(record, definition);
    clock.advance(CALL_DEADLINE_MS);

    expect(await rejection(early)).to.be.instanceOf(OutcomeUnknown);
    // it had landed
    expect(await rejection(records.launchOrder(record, definition))).to.be.instanceOf(
      RecordConflict,
    );
  });

  it('measures the time of each call from its own start', async () => {
    const { database, clock } = await open();
    await database.run('templates.list');
    clock.advance(CALL_DEADLINE_MS - 1);

    const call = database.run('templates.list');
    clock.advance(CALL_DEADLINE_MS - 1);

    expect(await call).to.deep.equal([]);
  });

  /** Writes until the disk is full; answers the ids that were acknowledged. */
  const fill = async ({
    records,
    database,
  }: Awaited<ReturnType<typeof open>>): Promise<readonly string[]> => {
    const acknowledged: string[] = [];
    for (let round = 0; round < 500; round++) {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, async () => {
          const { record, definition } = anOrder(aDefinition({ argv: ['x'.repeat(4_000)] }));
          await records.launchOrder(record, definition);
          acknowledged.push(record.id);
        }),
      );
      const failures = outcomes.flatMap((outcome) =>
        outcome.status === 'rejected' ? [outcome.reason] : [],
      );
      if (failures.length === 0) continue;
      for (const failure of failures) expect(failure).to.be.instanceOf(OutcomeUnknown);
      expect(await database.failed)
        .to.be.instanceOf(Error)
        .with.property('message')
        .that.matches(/full|disk/);
      expect(await rejection(records.all()))
        .to.be.instanceOf(Refusal)
        .with.property('code', 'UNAVAILABLE');
      return acknowledged;
    }
    throw new Error('the disk never filled up');
  };

  /** What a process that dies now would leave. */
  const aCopy = (of: string): string => {
    const copy = aFolder();
    cpSync(of, copy, { recursive: true });
    copies.push(copy);
    return copy;
  };

  it('stops for good at a failed commit, without losing acknowledged data', async () => {
    const acknowledged = await fill(await open({ maxPages: 80 }));
    const left = aCopy(folder); // the file itself stays locked until this process ends

    const again = await open({}, left);

    expect(acknowledged).to.not.be.empty;
    expect((await again.records.all()).map(({ record }) => record.id)).to.include.members(
      acknowledged,
    );
    const { record, definition } = aLaunchOrder();
    await again.records.launchOrder(record, definition);
  });

  it('moves commits to a thread while the disk is slow, without losing any', async () => {
    let slow = 0.001;
    const clock = new TestClock();
    const { records, database } = await open({ slowCommitMs: () => slow, clock });
    const launch = async (count: number): Promise<void> => {
      for (const { record, definition } of Array.from({ length: count }, aLaunchOrder))
        await records.launchOrder(record, definition);
    };
    await launch(100);
    expect(database.executor).to.equal('thread');
    slow = NEVER_MS;
    clock.advance(60_000);
    await launch(100);
    expect(database.executor).to.equal('own thread');

    await launch(100);
    await database.close();

    expect(await (await open()).records.all()).to.have.length(300);
  });

  it('moves commits to the thread for a minute after a single slow commit', async () => {
    let slow = NEVER_MS;
    const clock = new TestClock();
    const { records, database } = await open({ slowCommitMs: () => slow, clock });
    const launch = async (): Promise<void> => {
      const { record, definition } = aLaunchOrder();
      await records.launchOrder(record, definition);
    };
    await launch();
    expect(database.executor).to.equal('own thread');
    slow = 0.000_1;
    await launch();
    slow = NEVER_MS;
    expect(database.executor).to.equal('thread');

    for (let n = 0; n < 10; n += 1) await launch();
    clock.advance(59_999);
    await launch();
    expect(database.executor).to.equal('thread');
    clock.advance(1);
    await launch();
    expect(database.executor).to.equal('own thread');
  });

  it('stops for good at a failed commit in the thread, too', async () => {
    const full = await open({ maxPages: 80, slowCommitMs: () => 0.001 });
    for (let at = 0; at < 100; at += 1) await full.records.all();
    expect(full.database.executor).to.equal('thread');
    const acknowledged = await fill(full);
    await full.database.close();

    const found = (await (await open()).records.all()).map(({ record }) => record.id);
    expect(acknowledged).to.not.be.empty;
    expect(found).to.include.members(acknowledged);
  });

  it('stops for good on a full disk', async function () {
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'sandpool-test', disk], {
        stdio: 'ignore',
      });
    } catch {
      skipBecause(this, 'needs the right to mount a tmpfs');
    }
    try {
      const acknowledged = await fill(await open({}, disk));

      const again = await open({}, aCopy(disk));

      expect(acknowledged).to.not.be.empty;
      expect((await again.records.all()).map(({ record }) => record.id)).to.include.members(
        acknowledged,
      );
      await again.database.close();
    } finally {
      await file?.database.close();
      file = undefined;
      execFileSync('umount', ['-l', disk]);
    }
  });

  it('loses no acknowledged data when it is killed during writes, round after round', async function () {
    const order = ['asked', 'idle', 'claimed', 'ending'];
    const known = new Map<string, string>();
    for (const count of [10, 40, 400, 1_500]) {
      writer = await aWriter(path);
      await writer.reached(count);
      await writer.kill();
      for (const [id = '', state = ''] of writer.acknowledged.map((line) => line.split(' ')))
        known.set(id, state);

      const { records, database } = await open();
      const found = new Map<string, string>(
        (await records.all()).map(({ record }) => [record.id, record.state]),
      );
      for (const [, body] of await database.run('approvals.list'))
        found.set((JSON.parse(String(body)) as { readonly id: string }).id, 'asked');
      await database.close();

      const lost = [...known].filter(
        ([id, state]) => order.indexOf(found.get(id) ?? 'gone') < order.indexOf(state),
      );
      expect(lost).to.deep.equal([]);
    }
  });

  it('refuses a file that another process holds, until that process ends', async function () {
    writer = await aWriter(path);

    const refused = await refusal();
    expect(refused.why).to.equal('locked');
    expect(refused.message).to.include(path).and.include('already runs');

    await writer.kill();
    expect(await (await open()).records.all()).to.be.an('array');
  });

  it('refuses a file of a later version, explains the remedy, and does not change the file', async () => {
    await (await open({ version: '9.1.0+abc' })).database.close();
    directly(path, (connection) => {
      connection.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    });

    const refused = await refusal();

    expect(refused.why).to.equal('newer');
    expect(refused.message)
      .to.include(path)
      .and.include(`version ${SCHEMA_VERSION + 1}`)
      .and.include('written by sandpool 9.1.0+abc')
      .and.include('start the newer sandpool');
    directly(path, (connection) => {
      connection.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    });
    expect(await (await open()).records.all()).to.deep.equal([]);
  });

  it('refuses a file from before the first release, and explains the remedy', async () => {
    await (await open()).database.close();
    directly(path, (connection) => {
      connection.exec('PRAGMA user_version = 20');
    });

    const refused = await refusal();

    expect(refused.why).to.equal('older');
    expect(refused.message)
      .to.include(path)
      .and.include('schema version 20')
      .and.include('choose another');
    directly(path, (connection) => {
      expect(connection.prepare('PRAGMA user_version').get()).to.deep.include({ user_version: 20 });
    });
  });

  it('refuses a file that is not a database, or one of another program', async () => {
    writeFileSync(
      path,
      'not a database, but a text that is long enough to be looked at as one\n'.repeat(100),
    );
    expect((await refusal()).why).to.equal('foreign');

    rmSync(path);
    directly(path, (connection) => {
      connection.exec('CREATE TABLE other (x); INSERT INTO other VALUES (1)');
    });
    expect((await refusal()).why).to.equal('foreign');
    expect(
      directly(path, (connection) => connection.prepare('SELECT x FROM other').all()),
    ).to.have.length(1);
  });

  it('refuses a path that cannot be created', async () => {
    path = join(folder, 'absent', 'sandpool.db');

    const refused = await refusal();

    expect(refused.why).to.equal('broken');
    expect(refused.message).to.include(path);
  });

  it('leaves a new file empty if its schema fails half-way', () => {
    directly(path, (connection) => {
      const failing = new Proxy(connection, {
        get: (target, name) =>
          name === 'exec'
            ? (text: string) => {
                target.exec(text.replace('CREATE TABLE history_counts', 'CREATE TABLE instances'));
              }
            : name === 'prepare'
              ? target.prepare.bind(target)
              : Reflect.get(target, name),
      });
      expect(() => {
        ensureSchema(failing, path);
      }).to.throw(/instances/);
      expect(connection.prepare('PRAGMA user_version').get()).to.deep.include({ user_version: 0 });
      expect(connection.prepare('SELECT name FROM sqlite_schema').all()).to.deep.equal([]);
    });
  });

  it('never scans the instances or the history', () => {
    directly(path, (connection) => {
      ensureSchema(connection, path);
      const scans = Object.entries(STATEMENTS).flatMap(([name, sql]) => {
        const parameters = Array.from(
          {
            length:
              new Set(sql.match(/\?\d*/g)).size === 1
                ? (sql.match(/\?/g) ?? []).length
                : Math.max(
                    0,
                    ...(sql.match(/\?(\d+)/g) ?? []).map((mark) => Number(mark.slice(1))),
                  ),
          },
          () => 1,
        );
        const plan = connection
          .prepare(`EXPLAIN QUERY PLAN ${sql}`)
          .all(...parameters)
          .map(({ detail }) => String(detail));
        return plan
          .filter((step) => /^SCAN (h|history|i|instances)\b/.test(step))
          .map((step) => `${name}: ${step}`);
      });

      expect(scans).to.deep.equal([]);
    });
  });
});

import { expect } from 'chai';
import type { PoolCondition } from '../../src/model/pools/pool-condition.ts';
import { CLOSED_BREAKER, type PoolCounts } from '../../src/model/pools/pool.ts';
import { replaceableOf } from '../../src/machines/pool/decisions.ts';
import { aPolicy, thePool, APool, OLD, T0, type PoolWord } from './examples.ts';

const LEAD: PoolWord = { type: 'LEAD', now: T0 };
const at = (ms: number): number => T0 + ms;
const moved = (
  from: keyof PoolCounts | undefined,
  to: keyof PoolCounts | undefined,
  revision?: string,
  now = T0,
): PoolWord => ({ type: 'INSTANCE_MOVED', from, to, ordered: false, now, revision });
const appeared: PoolWord = {
  type: 'INSTANCE_MOVED',
  from: undefined,
  to: 'starting',
  ordered: true,
  now: T0,
};
const failed = (revision = 'r1', now = T0): PoolWord => ({
  type: 'START_FAILED',
  revision,
  reason: 'no image',
  now,
});
const started = (revision = 'r1', now = T0): PoolWord => ({
  type: 'INSTANCE_STARTED',
  revision,
  now,
});
const edited = (part: Parameters<typeof thePool>[0], now = T0): PoolWord => ({
  type: 'RECORD',
  record: thePool(part),
  now,
});
const four = thePool({ replicas: 4, createdAt: T0 - 5 });
const stale = (): APool => new APool({ record: four, stale: { idle: 4 } }).send(LEAD);
const wordsOf = (pool: APool) =>
  pool.context.conditions
    .filter(({ type }) => type !== 'TemplateResolved')
    .map(({ type, status, reason, since }) => `${type} ${status} ${reason} ${since - T0}`);
const typesOf = (pool: APool) => pool.taken().map(({ type }) => type);

describe('a pool with a new revision', () => {
  it('retires old instances, and launches one for each that has gone', () => {
    const pool = stale();
    expect(pool.rollout).to.equal('progressing');
    expect(typesOf(pool)).to.deep.equal(['replace', 'save-conditions']);
    expect(replaceableOf(pool.context, T0).idle).to.equal(1);
    pool.send(moved('idle', 'stopping', OLD));
    expect(pool.taken()).to.deep.equal([{ type: 'launch', count: 1 }]);
    expect(replaceableOf(pool.context, T0).idle).to.equal(0);
  });

  it('continues when new instances are ready, and is current when all are', () => {
    const pool = stale();
    for (let replaced = 1; replaced <= 4; replaced++) {
      pool.send(moved('idle', 'stopping', OLD), appeared);
      expect(pool.rollout).to.equal('progressing');
      pool.taken();
      pool.send(moved('starting', 'idle'));
      if (replaced === 1) pool.send(started());
      expect(typesOf(pool)).to.deep.equal(replaced < 4 ? ['replace'] : []);
    }
    expect(pool.rollout).to.equal('current');
    expect(pool.context.updated.idle).to.equal(4);
  });

  const onTrial = (): APool => {
    const pool = stale().send(moved('idle', 'stopping', OLD), appeared, moved('starting', 'idle'));
    pool.taken();
    return pool;
  };

  it('replaces only the first instance until it has lived for a while', () => {
    const pool = onTrial();
    expect(replaceableOf(pool.context, T0).idle).to.equal(0);
    expect(pool.context.conditions[0]).to.include({
      reason: 'RollingOut',
      message: 'instances are being replaced with revision r1; the first of them must become ready',
    });
    expect(typesOf(pool.send({ type: 'DEADLINE', now: at(10_999) }))).to.not.include('replace');
    expect(pool.context.deadline).to.equal(at(11_000));
    expect(typesOf(pool.send({ type: 'DEADLINE', now: at(11_000) }))).to.deep.equal(['replace']);
    expect(pool.context.conditions[0]?.message).to.equal(
      'instances are being replaced with revision r1',
    );
  });

  it('continues at once when the first new instance is claimed', () => {
    expect(typesOf(onTrial().send(moved('idle', 'running')))).to.include('replace');
  });

  it('keeps the old instances if every new one dies soon after it is ready', () => {
    const pool = onTrial();
    for (let death = 1; death <= 3; death++) {
      pool.send(
        failed('r1', at(death)),
        moved('idle', 'failed', undefined, at(death)),
        moved('failed', undefined, undefined, at(death)),
      );
      expect(typesOf(pool)).to.not.include('replace');
      if (death < 3)
        pool.send({ ...appeared, now: at(death) }, moved('starting', 'idle', undefined, at(death)));
      pool.taken();
    }
    expect(pool.rollout).to.equal('blocked');
    expect(pool.context.counts.idle).to.equal(3);
  });

  it('skips the trial for a revision that has proved to live', () => {
    const definition = { ...four.definition, idleTimeoutMs: 7 };
    const other = { ...four.definition, network: 'host' as const };
    const pool = onTrial().send(started());
    expect(
      pool.send(edited({ ...four, definition, updateRevision: 'r2' })).context.proven,
    ).to.equal(true);
    expect(
      pool.send(edited({ ...four, definition: other, updateRevision: 'r3' })).context.proven,
    ).to.equal(false);
    expect(
      pool.send(edited({ ...four, updateRevision: 'r1' })).context.proven,
      'back again',
    ).to.equal(true);
  });

  it('never touches running sandboxes, and counts them by their own revision', () => {
    const pool = new APool({ record: four, stale: { running: 4 } }).send(LEAD);
    expect(pool.rollout).to.equal('current');
    expect(typesOf(pool)).to.deep.equal([]);
    expect(pool.context.updated.running).to.equal(0);
  });

  it('decides nothing while it follows, and continues when it leads', () => {
    const pool = new APool({ record: four, stale: { idle: 4 } }).send(moved(undefined, 'running'));
    expect(pool.rollout).to.equal('progressing');
    expect(pool.taken()).to.deep.equal([]);
    expect(typesOf(pool.send(moved('running', undefined), LEAD))).to.include('replace');
  });

  it('is current at once when the change is reverted', () => {
    const pool = new APool({ record: four, counts: { idle: 4 } }).send(
      LEAD,
      edited({ replicas: 4, updateRevision: 'r2' }),
    );
    expect(pool.rollout).to.equal('progressing');
    expect(pool.send(edited({ replicas: 4 })).rollout).to.equal('current');
  });

  it('replaces nothing in a pool in deletion', () => {
    const pool = new APool({
      record: thePool({ replicas: 4, deleting: 'keep-running' }),
      stale: { idle: 4 },
    }).send(LEAD);
    expect(pool.rollout).to.equal('current');
    expect(typesOf(pool)).to.deep.equal(['trim']);
  });
});

describe('a revision that fails to start', () => {
  const blocked = (): APool => {
    const pool = stale().send(
      moved('idle', 'stopping', OLD),
      appeared,
      failed(),
      failed(),
      failed(),
      moved('starting', 'failed'),
    );
    pool.taken();
    return pool;
  };

  it('stops the rollout, and the old instances stay', () => {
    const pool = blocked();
    expect(pool.rollout).to.equal('blocked');
    expect(replaceableOf(pool.context, T0)).to.deep.include({
      starting: 0,
      unavailable: 0,
      idle: 0,
    });
    expect(typesOf(pool.send(moved('failed', undefined)))).to.deep.equal([]);
    pool.send({ type: 'DEADLINE', now: at(1_000) });
    expect(pool.taken()).to.deep.equal([{ type: 'launch', count: 1 }]);
  });

  it('shows the reason', () => {
    expect(wordsOf(blocked())).to.deep.equal([
      'Progressing False RolloutBlocked 0',
      'Degraded True StartsFail 0',
    ]);
    expect(blocked().context.conditions[0]?.message).to.equal(
      'revision r1 does not start, and older instances remain: no image',
    );
  });

  it('continues only after a start has proved good', () => {
    const pool = blocked().send(
      { type: 'DEADLINE', now: at(1_000) },
      appeared,
      moved('starting', 'idle', undefined, at(1_100)),
    );
    expect(typesOf(pool)).to.deep.equal(['launch']);
    expect(replaceableOf(pool.context, at(2_000)).idle).to.equal(0);
    expect(pool.send(started('r1', at(2_000))).rollout).to.equal('progressing');
    expect(typesOf(pool)).to.deep.equal(['save-breaker', 'replace']);
  });

  it('is forgotten at the next change', () => {
    const pool = blocked().send(
      edited({
        replicas: 4,
        updateRevision: 'r2',
        breaker: { failures: 3, pausedUntil: at(1_000), reason: 'no image' },
      }),
    );
    expect(pool.rollout).to.equal('progressing');
    expect(pool.context.breaker).to.deep.equal(CLOSED_BREAKER);
    expect(pool.taken().slice(0, 2)).to.deep.equal([
      { type: 'save-breaker', breaker: CLOSED_BREAKER, revision: 'r2' },
      { type: 'launch', count: 1 },
    ]);
  });

  it('gets one more attempt after its pause, even if no instance is missing', () => {
    const pool = blocked().send(edited({ replicas: 3 }), moved('failed', undefined));
    expect(typesOf(pool)).to.not.include('replace');
    expect(pool.context.deadline).to.equal(at(1_000));
    pool.send({ type: 'DEADLINE', now: at(1_000) });
    expect(typesOf(pool)).to.deep.equal(['replace']);
    expect(replaceableOf(pool.context, at(1_000)).idle).to.equal(1);
  });

  it("is not judged by another revision's starts", () => {
    const pool = stale().send(failed(OLD), failed(OLD), failed(OLD));
    expect(pool.breaker).to.equal('closed');
    expect(blocked().send(started(OLD)).rollout).to.equal('blocked');
  });
});

describe('the conditions of a pool', () => {
  it('are unremarkable at first, dated at creation, and not saved', () => {
    const pool = new APool({ record: four }).send(LEAD);
    expect(wordsOf(pool)).to.deep.equal([
      'Progressing False RolloutComplete -5',
      'Degraded False AsExpected -5',
    ]);
    expect(typesOf(pool)).to.deep.equal(['launch']);
  });

  it('say that a change waits', () => {
    const pool = new APool({ record: four, counts: { idle: 4 } }).send(
      LEAD,
      edited({
        ...four,
        unrendered: true,
        updateStrategy: { autoUpdate: false, maxUnavailable: '1' },
      }),
    );
    expect(wordsOf(pool)[0]).to.equal('Progressing False UpdateHeld -5');
  });

  it('change their times only with their status', () => {
    const pool = new APool({ record: four, counts: { idle: 3, unavailable: 1 } }).send({
      ...LEAD,
      now: at(10),
    });
    expect(wordsOf(pool)[1]).to.equal('Degraded True InstancesUnavailable 10');
    pool.send(moved('idle', 'unavailable', undefined, at(20)));
    expect(wordsOf(pool)[1]).to.equal('Degraded True InstancesUnavailable 10');
    pool.send(
      moved('idle', 'failed', undefined, at(30)),
      failed('r1', at(30)),
      failed('r1', at(30)),
      failed('r1', at(30)),
    );
    expect(wordsOf(pool)[1]).to.equal('Degraded True StartsFail 10');
    expect(wordsOf(pool)[0]).to.equal('Progressing False RolloutComplete -5');
  });

  it('hide failed starts if more instances run than wanted', () => {
    const pool = new APool({ record: { ...four, replicas: 0 }, counts: { running: 1 } }).send(
      LEAD,
      failed(),
      failed(),
      failed(),
    );
    expect(wordsOf(pool)[1]).to.equal('Degraded False AsExpected -5');
  });

  it('are saved when they change, at most every ten seconds', () => {
    const pool = new APool({ record: four, counts: { idle: 4 } }).send(
      LEAD,
      moved('idle', 'unavailable'),
    );
    expect(pool.taken()).to.deep.include({
      type: 'save-conditions',
      conditions: pool.context.conditions,
    });
    pool.send(
      edited({ ...four, conditions: pool.context.conditions }),
      moved('unavailable', 'idle', undefined, at(500)),
    );
    expect(typesOf(pool)).not.to.include('save-conditions');
    expect(pool.context.deadline).to.equal(at(10_000));
    expect(typesOf(pool.send({ type: 'DEADLINE', now: at(10_000) }))).to.deep.equal([
      'save-conditions',
    ]);
  });

  it('are saved again after a failed save', () => {
    const pool = new APool({ record: four, counts: { idle: 3, unavailable: 1 } }).send(LEAD);
    pool.taken();
    expect(pool.context.deadline).to.equal(at(10_000));
    expect(typesOf(pool.send({ type: 'DEADLINE', now: at(10_000) }))).to.include('save-conditions');
  });

  it("take over the previous leader's times, even if these arrive late", () => {
    const pool = new APool({ record: four, counts: { idle: 3, unavailable: 1 } }).send(LEAD);
    const saved = pool.context.conditions.map((each) => ({ ...each, since: each.since - 700 }));
    expect(pool.send(edited({ ...four, conditions: saved })).context.conditions).to.equal(
      pool.context.record.conditions,
    );
  });

  it('keep their times across a restart and a takeover', () => {
    const conditions: readonly PoolCondition[] = [
      { type: 'Progressing', status: 'True', reason: 'RollingOut', message: '', since: T0 - 90 },
      { type: 'Degraded', status: 'False', reason: 'AsExpected', message: '', since: T0 - 900 },
    ];
    const pool = new APool({ record: { ...four, conditions }, policy: aPolicy() });
    // Its instances are found one by one.
    pool.send(
      moved(undefined, 'idle', OLD),
      moved(undefined, 'unavailable', OLD),
      moved(undefined, 'idle'),
      moved('unavailable', 'idle', OLD),
      LEAD,
    );
    expect(wordsOf(pool)).to.deep.equal([
      'Progressing True RollingOut -90',
      'Degraded False AsExpected -900',
    ]);
  });
});

import { expect } from 'chai';
import { surplusOf } from '../../src/machines/pool/decisions.ts';
import { CLOSED_BREAKER, type PoolCounts } from '../../src/model/pools/pool.ts';
import { aPolicy, thePool, APool, counts, T0, type PoolWord } from './examples.ts';

const LEAD: PoolWord = { type: 'LEAD', now: T0 };
const deadline = (now: number): PoolWord => ({ type: 'DEADLINE', now });
const moved = (from: keyof PoolCounts | undefined, to: keyof PoolCounts | undefined): PoolWord => ({
  type: 'INSTANCE_MOVED',
  from,
  to,
  ordered: false,
  now: T0,
});
const appeared: PoolWord = {
  type: 'INSTANCE_MOVED',
  from: undefined,
  to: 'starting',
  ordered: true,
  now: T0,
};
const started: PoolWord = { type: 'INSTANCE_STARTED', revision: 'r1', now: T0 };
const failed = (now = T0): PoolWord => ({
  type: 'START_FAILED',
  revision: 'r1',
  reason: 'no image',
  now,
});
const edited = (part: Parameters<typeof thePool>[0], now = T0): PoolWord => ({
  type: 'RECORD',
  record: thePool(part),
  now,
});
const withInstances = (has: Partial<PoolCounts>, part: Parameters<typeof thePool>[0] = {}): APool =>
  new APool({ record: thePool(part), counts: has });

describe('a pool that fills', () => {
  it('launches the missing instances once it leads, and no more when they appear', () => {
    const pool = new APool().send(LEAD);
    expect(pool.taken()).to.deep.equal([{ type: 'launch', count: 2 }]);
    pool.send(appeared, appeared);
    expect(pool.taken()).to.deep.equal([]);
    expect(pool.context).to.deep.include({ counts: counts({ starting: 2 }), ordered: 0 });
  });

  it('is active once all instances have been ready', () => {
    const pool = new APool().send(LEAD, appeared, appeared, moved('starting', 'idle'));
    expect(pool.lifecycle).to.equal('pending');
    pool.send(moved('starting', 'idle'));
    expect(pool.lifecycle).to.equal('active');
    expect(pool.send(moved('idle', undefined)).lifecycle).to.equal('active');
  });

  it('launches nothing while it follows', () => {
    const pool = new APool().send(edited({ replicas: 5 }), moved(undefined, 'idle'), failed());
    expect(pool.intents).to.deep.equal([]);
    expect(pool.send(LEAD).taken()).to.deep.equal([{ type: 'launch', count: 4 }]);
  });

  it('repeats a launch that was dropped', () => {
    const pool = new APool().send(LEAD, { type: 'LAUNCHES_DROPPED', count: 2, now: T0 });
    expect(pool.taken()).to.deep.equal([
      { type: 'launch', count: 2 },
      { type: 'launch', count: 2 },
    ]);
  });

  it('repeats a launch that it ordered under a lost lease', () => {
    const pool = new APool().send(LEAD, { type: 'FOLLOW' }, LEAD);
    expect(pool.taken()).to.deep.equal([
      { type: 'launch', count: 2 },
      { type: 'launch', count: 2 },
    ]);
  });

  it('launches a replacement after an instance is lost', () => {
    const pool = withInstances({ idle: 2 }).send(LEAD, moved('idle', 'failed'));
    expect(pool.taken()).to.deep.equal([{ type: 'launch', count: 1 }]);
  });

  it('launches nothing for a claim, and one instance when the sandbox ends', () => {
    const pool = withInstances({ idle: 2 }).send(LEAD, moved('idle', 'running'));
    expect(pool.taken()).to.deep.equal([]);
    expect(pool.send(moved('running', 'stopping')).taken()).to.deep.equal([
      { type: 'launch', count: 1 },
    ]);
  });

  it('continues when a new token arrives', () => {
    const policy = aPolicy({ refill: { perSecond: 1, burst: 1, inFlight: 16 } });
    const pool = new APool({ policy }).send(LEAD);
    expect(pool.taken()).to.deep.equal([{ type: 'launch', count: 1 }]);
    expect(pool.context.deadline).to.equal(T0 + 1_000);
    expect(pool.send(deadline(T0 + 1_000)).taken()).to.deep.equal([{ type: 'launch', count: 1 }]);
    expect(pool.context.deadline).to.equal(undefined);
  });
});

describe('a pool with too many instances', () => {
  it('retires only unclaimed instances', () => {
    const pool = withInstances({ idle: 2, running: 3 }).send(LEAD);
    expect(pool.scale).to.equal('surplus');
    expect(pool.taken()).to.deep.equal([{ type: 'trim' }]);
    expect(surplusOf(pool.context)).to.equal(2);
  });

  it('never touches running sandboxes', () => {
    const pool = withInstances({ running: 3 }).send(LEAD);
    expect(pool.taken()).to.deep.equal([]);
    expect(surplusOf(pool.context)).to.equal(0);
  });
});

describe('a pool with failing starts', () => {
  const failing = (): APool =>
    new APool().send(LEAD, appeared, appeared, failed(), failed(), failed());

  it('pauses after several failures in a row, and saves the pause', () => {
    const pool = failing();
    expect(pool.breaker).to.equal('open');
    expect(pool.intents).to.deep.include({
      type: 'save-breaker',
      breaker: { failures: 3, pausedUntil: T0 + 1_000, reason: 'no image' },
      revision: 'r1',
    });
    pool.taken();
    expect(
      pool.send(moved('starting', 'failed'), moved('starting', 'failed')).taken(),
    ).to.deep.equal([]);
  });

  it('starts one instance after the pause, and all once that one has started', () => {
    const pool = failing().send(moved('starting', 'failed'), moved('starting', 'failed'));
    pool.taken();
    expect(pool.context.deadline).to.equal(T0 + 1_000);
    expect(pool.send(deadline(T0 + 1_000)).taken()).to.deep.equal([{ type: 'launch', count: 1 }]);
    pool.send(appeared, moved('starting', 'idle'));
    pool.taken();
    expect(pool.send(started).taken()).to.deep.equal([
      { type: 'save-breaker', breaker: CLOSED_BREAKER, revision: 'r1' },
      { type: 'launch', count: 1 },
    ]);
    expect(pool.breaker).to.equal('closed');
  });

  it('forgets failures that a good start interrupts', () => {
    const pool = new APool().send(LEAD, failed(), failed(), started, failed(), failed());
    expect(pool.breaker).to.equal('closed');
  });

  it('keeps its pause across a restart', () => {
    const pool = new APool({
      record: thePool({ breaker: { failures: 3, pausedUntil: T0 + 400, reason: 'no' } }),
    }).send(LEAD);
    expect(pool.taken().map(({ type }) => type)).to.deep.equal(['save-conditions']);
    expect(pool.context.deadline).to.equal(T0 + 400);
  });
});

describe('a pool without room for its instances', () => {
  it('waits and tries again, without counting a failure', () => {
    const pool = new APool().send(LEAD, appeared, appeared, {
      type: 'START_DEFERRED',
      reason: 'no place',
      now: T0,
    });
    pool.taken();
    expect(
      pool.send(moved('starting', undefined), moved('starting', undefined)).taken(),
    ).to.deep.equal([]);
    expect(pool.context.breaker).to.deep.equal({
      failures: 0,
      pausedUntil: T0 + 1_000,
      reason: 'no place',
    });
    expect(pool.context.deadline).to.equal(T0 + 1_000);
    expect(pool.send(deadline(T0 + 1_000)).taken()).to.deep.equal([{ type: 'launch', count: 2 }]);
  });

  it('clears the condition once an instance has started', () => {
    const pool = new APool().send(
      LEAD,
      { type: 'START_DEFERRED', reason: 'no place', now: T0 },
      started,
    );
    expect(pool.context.breaker).to.deep.equal(CLOSED_BREAKER);
  });
});

describe('a pool in deletion', () => {
  it('retires unclaimed instances, and is removed once they are gone', () => {
    const pool = withInstances({ idle: 1, running: 1 }).send(
      LEAD,
      edited({ deleting: 'keep-running' }),
    );
    expect(pool.taken()).to.deep.equal([{ type: 'trim' }]);
    pool.send(moved('idle', 'stopping'));
    expect(pool.taken()).to.deep.equal([{ type: 'remove' }]);
    expect(pool.send({ type: 'REMOVED' }).lifecycle).to.equal('removed');
  });

  it('also ends running sandboxes with force, and waits until all are gone', () => {
    const pool = withInstances({ running: 1 }, { replicas: 1 }).send(
      LEAD,
      edited({ deleting: 'force' }),
    );
    expect(pool.taken()).to.deep.equal([{ type: 'end-running' }]);
    pool.send(moved('running', 'stopping'));
    expect(pool.lifecycle).to.equal('deleting.draining');
    expect(pool.send(moved('stopping', undefined)).taken()).to.deep.equal([{ type: 'remove' }]);
  });

  it('launches nothing, even when an older record arrives', () => {
    const pool = withInstances({ idle: 2 }).send(
      LEAD,
      edited({ deleting: 'keep-running' }),
      moved('idle', 'stopping'),
      edited({ replicas: 9 }),
    );
    expect(pool.taken().some(({ type }) => type === 'launch')).to.equal(false);
  });

  it('clears the reason for which its refill waited', () => {
    const policy = aPolicy({ refill: { perSecond: 1, burst: 1, inFlight: 16 } });
    const pool = new APool({ policy }).send(
      LEAD,
      appeared,
      edited({ deleting: 'keep-running' }),
      deadline(T0 + 2_000),
    );
    expect(pool.context.deadline).to.equal(undefined);
  });

  it('repeats its removal after a pause if it fails or is not answered', () => {
    for (const event of [
      { type: 'REMOVE_OUTCOME_UNKNOWN', now: T0 } as const,
      deadline(T0 + 1_000),
    ]) {
      const pool = new APool().send(edited({ deleting: 'keep-running' }), LEAD, event);
      expect(pool.lifecycle).to.equal('deleting.unremoved');
      expect(pool.taken()).to.deep.equal([{ type: 'remove' }]);
      expect(pool.send(deadline(T0 + 5_000)).taken()).to.deep.equal([{ type: 'remove' }]);
    }
  });

  it('waits for an instance that appears during the removal', () => {
    const pool = new APool().send(
      edited({ deleting: 'keep-running' }),
      LEAD,
      { type: 'REMOVE_OUTCOME_UNKNOWN', now: T0 },
      moved(undefined, 'idle'),
    );
    pool.taken();
    expect(pool.send(deadline(T0 + 1_000)).taken()).to.deep.equal([]);
    expect(pool.send(moved('idle', 'stopping')).taken()).to.deep.equal([{ type: 'remove' }]);
  });

  it('is removed by the next leader if the lease is lost', () => {
    const pool = new APool().send(edited({ deleting: 'keep-running' }), LEAD, { type: 'FOLLOW' });
    expect(pool.lifecycle).to.equal('deleting.draining');
    pool.taken();
    expect(pool.send(LEAD).taken()).to.deep.equal([{ type: 'remove' }]);
  });
});

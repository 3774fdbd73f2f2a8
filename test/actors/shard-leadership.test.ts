import { expect } from 'chai';
import { ShardLeadership } from '../../src/actors/runtime/shard-leadership.ts';
import type { Log } from '../../src/contracts/log.ts';
import { eventually } from '../support/harness/eventually.ts';
import { GivenLeases } from '../support/fakes/given-leases.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe('shard leadership', () => {
  const aLeader = (
    catchUp: () => Promise<void> = async () => undefined,
    log: Log = quietLog,
    drains?: () => Promise<void>,
  ) => {
    const leases = new GivenLeases();
    const clock = new TestClock();
    const told: string[] = [];
    let drained = (): void => undefined;
    const leading = new ShardLeadership({
      leases,
      clock,
      log,
      caughtUp: catchUp,
      lead: (shard) => {
        told.push(`lead ${shard}`);
      },
      follow: (shard) => {
        told.push(`follow ${shard}`);
      },
      drained:
        drains ??
        (() =>
          new Promise((resolve) => {
            drained = resolve;
          })),
    });
    return {
      leases,
      clock,
      told,
      leading,
      drain: () => {
        drained();
      },
    };
  };

  it('begins with its leases once the mirror has caught up', async () => {
    const { leases, told, leading } = aLeader();
    leases.give(3, 1);
    leases.give(5, 1);
    await leading.start();
    expect(told).to.deep.equal(['lead 3', 'lead 5']);
    expect(leading.leads(3)).to.equal(true);
    expect(leading.leads(4)).to.equal(false);
  });

  it('logs its shards in one short line', async () => {
    const lines: unknown[] = [];
    const { leases, leading, clock } = aLeader(undefined, {
      ...quietLog,
      info: (fields, event) => {
        lines.push([event, fields]);
      },
    });
    for (const shard of [6, 0, 1, 2, 4, 7]) leases.give(shard, shard + 1);
    await leading.start();
    clock.advance(100);

    expect(lines).to.deep.equal([['shards-led', { shards: '0-2 4 6-7', newestEpoch: 8 }]]);
  });

  it('waits for a mirror that lags, and retries if the lag is unknown', async () => {
    let tries = 0;
    const { leases, told, leading, clock } = aLeader(async () => {
      if (++tries < 3) throw new Error('out of reach');
    });
    await leading.start();
    leases.give(3, 7);
    await eventually(() => tries === 1, 'tried once');
    expect(told).to.deep.equal([]);
    await eventually(() => {
      clock.advance(500);
      return told.length > 0;
    }, 'led');
    expect([tries, told]).to.deep.equal([3, ['lead 3']]);
  });

  it('does not lead a shard whose lease was lost or renewed during the catch-up', async () => {
    let letGo = (): void => undefined;
    const { leases, told, leading } = aLeader(
      () =>
        new Promise((resolve) => {
          letGo = resolve;
        }),
    );
    await leading.start();
    leases.give(3, 7);
    await Promise.resolve();
    leases.take(3, 'gone');
    letGo();
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    expect(told).to.deep.equal([]);
    expect(leading.leads(3)).to.equal(false);
  });

  it('stops deciding as soon as a lease is lost', async () => {
    const { leases, told, leading } = aLeader();
    leases.give(3, 1);
    await leading.start();
    leases.take(3, 'gone');
    expect(told).to.deep.equal(['lead 3', 'follow 3']);
    expect(leases.givenUp).to.deep.equal([]);
  });

  it('hands a lease over in order: stops, drains, releases', async () => {
    const { leases, told, leading, drain } = aLeader();
    leases.give(3, 1);
    await leading.start();
    leases.take(3, 'wanted-elsewhere');
    expect(told.at(-1)).to.equal('follow 3');
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    expect(leases.givenUp).to.deep.equal([]);
    drain();
    await eventually(() => leases.givenUp.length === 1, 'given up');
  });

  it('leaves a shard to others while its mirror lags', async () => {
    let isBehind = true;
    const { leases, told, leading, clock } = aLeader(async () => {
      if (isBehind) throw new Error('out of reach');
    });
    await leading.start();
    leases.give(3, 7);
    await eventually(() => {
      clock.advance(500);
      return leases.givenUp.length > 0;
    }, 'given up');
    expect([leases.left, told]).to.deep.equal([true, []]);

    isBehind = false;
    await eventually(() => {
      clock.advance(500);
      return !leases.left;
    }, 'takes leases again');
    leases.give(3, 8);
    await eventually(() => told.length > 0, 'led');
    expect(told).to.deep.equal(['lead 3']);
  });

  it('leaves a shard to others if its mirror never answers', async () => {
    const { leases, leading, clock } = aLeader(() => new Promise(() => undefined));
    leases.give(3, 7);
    const started = leading.start();
    await eventually(() => {
      clock.advance(500);
      return leases.givenUp.length > 0;
    }, 'given up');
    await started;
    expect(leases.left).to.equal(true);
  });

  it('also releases later leases at once while its mirror lags', async () => {
    const { leases, leading, clock } = aLeader(async () => {
      throw new Error('out of reach');
    });
    await leading.start();
    leases.give(3, 7);
    for (let step = 0; step < 9; step++) {
      clock.advance(500);
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
    leases.give(4, 8);
    await eventually(() => {
      clock.advance(100);
      return leases.givenUp.length > 0;
    }, 'the first is given up');
    clock.advance(500);
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    clock.advance(500);

    await eventually(() => leases.givenUp.length === 2, 'and the other');
  });

  it('hands a lease over even if running work fails', async () => {
    const { leases, leading } = aLeader(undefined, quietLog, async () => {
      throw new Error('the outbox');
    });
    leases.give(3, 1);
    await leading.start();
    leases.take(3, 'wanted-elsewhere');
    await eventually(() => leases.givenUp.length === 1, 'given up');
  });

  it('continues even if a participant throws', async () => {
    const leases = new GivenLeases();
    const fails = (): never => {
      throw new Error('an actor');
    };
    const leading = new ShardLeadership({
      leases,
      clock: new TestClock(),
      log: quietLog,
      caughtUp: async () => undefined,
      lead: fails,
      follow: fails,
      drained: async () => undefined,
    });
    leases.give(3, 1);
    leases.give(4, 1);
    await leading.start();
    expect(leading.shards).to.deep.equal([3, 4]);

    leases.take(3, 'gone');
    leading.stop();
    expect(leading.shards).to.deep.equal([]);
  });

  it('releases everything when it stops', async () => {
    const { leases, told, leading } = aLeader();
    leases.give(3, 1);
    leases.give(4, 1);
    await leading.start();
    leading.stop();
    expect(leases.left).to.equal(true);
    expect(told.slice(2)).to.deep.equal(['follow 3', 'follow 4']);
    await leading.giveUp();
    expect(leases.givenUp).to.deep.equal([3, 4]);
  });

  it('resumes only after it stood back', async () => {
    const { leases, told, leading, drain } = aLeader();
    leases.give(3, 1);
    await leading.start();
    leading.pause();
    expect([told, leases.left, leading.leads(3)]).to.deep.equal([
      ['lead 3', 'follow 3'],
      true,
      false,
    ]);
    leases.give(3, 2);
    expect(leading.leads(3)).to.equal(false);

    leading.resume();
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    expect([told.length, leases.left]).to.deep.equal([2, true]); // what it led is not given up yet
    drain();

    await eventually(() => told.length === 3, 'it leads again');
    expect([told, leases.left, leases.givenUp, leading.leads(3)]).to.deep.equal([
      ['lead 3', 'follow 3', 'lead 3'],
      false,
      [3],
      true,
    ]);
  });

  it('begins only once nothing prevents it', async () => {
    const { leases, told, leading, drain } = aLeader();
    leases.give(3, 1);
    leading.pause();
    drain();
    await leading.start();
    expect(told).to.deep.equal([]);

    leading.resume();
    await eventually(() => told.length === 1, 'it leads');
    expect(told).to.deep.equal(['lead 3']);
  });

  it('never resumes after a stop', async () => {
    const { leases, told, leading } = aLeader();
    leases.give(3, 1);
    await leading.start();
    leading.stop();
    leading.resume();
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    expect([told, leases.left]).to.deep.equal([['lead 3', 'follow 3'], true]);
  });
});

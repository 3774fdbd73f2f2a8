import { expect } from 'chai';
import { PoolDemand } from '../../src/actors/pool/pool-demand.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const pool = { uid: 'p', owner: ALICE };
const WINDOW_MS = 60_000;

/** What two replicas know of one pool. */
const aPair = () => {
  const clock = new TestClock();
  const coordination = aCoordination(clock);
  const lacking: string[] = [];
  const [here, there] = ['here', 'there'].map((replica) => {
    const demand = new PoolDemand({
      coordination,
      clock,
      log: quietLog,
      lacking: (poolUid) => {
        lacking.push(`${replica} ${poolUid}`);
      },
    });
    demand.start();
    return demand;
  });
  if (!here || !there) throw new Error('two were made');
  return { clock, coordination, here, there, lacking };
};

describe('the unmet demand of claims', () => {
  it('counts each refused caller once on every replica', () => {
    const { here, there, lacking, clock } = aPair();
    here.refused('p', 'k1');
    here.refused('p', 'k1');
    there.refused('p', 'k2');

    expect([here.pending('p', WINDOW_MS), there.pending('p', WINDOW_MS)]).to.deep.equal([2, 2]);
    expect(there.cameAt('p')).to.equal(clock.now());
    expect(lacking).to.deep.equal(['here p', 'there p', 'here p', 'there p']);
  });

  it('ends when the caller is served on any replica', () => {
    const { here, there } = aPair();
    here.refused('p', 'k1');
    there.served('p', 'k2');
    expect(here.pending('p', WINDOW_MS)).to.equal(1);

    there.served('p', 'k1');

    expect([here.pending('p', WINDOW_MS), there.pending('p', WINDOW_MS)]).to.deep.equal([0, 0]);
  });

  it('ends with its window', () => {
    const { here, there, clock } = aPair();
    here.refused('p', 'k1');
    clock.advance(WINDOW_MS - 1);
    expect(there.pending('p', WINDOW_MS)).to.equal(1);

    clock.advance(1);

    expect(there.pending('p', WINDOW_MS)).to.equal(0);
    expect(there.pending('p', 0)).to.equal(0);
  });

  it('counts waiting claims in the shared order', async () => {
    const { here, there, coordination } = aPair();
    const places = [await coordination.joinWaiting(pool), await coordination.joinWaiting(pool)];
    here.waits('p', 'k1');
    await there.look([pool]);
    expect(there.pending('p', WINDOW_MS)).to.equal(2);

    for (const place of places) await coordination.leaveWaiting(place);
    await there.look([pool]);

    expect(there.pending('p', WINDOW_MS)).to.equal(0);
  });

  it('keeps its last count of waiting claims while the order is unreachable', async () => {
    const { here, there, coordination } = aPair();
    await coordination.joinWaiting(pool);
    here.waits('p', 'k1');
    await there.look([pool]);
    coordination.waiting = async () => {
      throw new Error('away');
    };

    await there.look([pool]);

    expect(there.pending('p', WINDOW_MS)).to.equal(1);
  });

  it('asks only about pools with a report of waiting claims', async () => {
    const { here, coordination } = aPair();
    let asked = 0;
    coordination.waiting = async () => {
      asked += 1;
      return 0;
    };
    here.refused('p', 'k1');

    await here.look([pool]);

    expect(asked).to.equal(0);
  });

  it('keeps the newest 1,000 callers of a pool', () => {
    const { here } = aPair();
    for (let count = 0; count < 1_100; count++) here.refused('p', `k${count}`);

    expect(here.pending('p', WINDOW_MS)).to.equal(1_000);
  });
});

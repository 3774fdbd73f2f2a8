import { expect } from 'chai';
import { NoPlace } from '../../../src/contracts/sandbox-driver.ts';
import { LaunchTurns } from '../../../src/embedded/driver/launch-turns.ts';
import type { LaunchOrder } from '../../../src/model/sandbox.ts';
import { aSpawnedDriver } from '../../support/harness/a-spawned-driver.ts';
import { ALICE, anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { rejection } from '../../support/harness/rejection.ts';

describe('launches on one machine', () => {
  it('are written a few at a time, tenants in turn, and ask for the size of the machine once', async () => {
    let asked = 0;
    const machine = () => {
      asked += 1;
      return { cpuCores: 2, memoryBytes: 2 ** 34 };
    };
    const spawned = aSpawnedDriver({ machine });
    const written: string[] = [];
    const refuse: (() => void)[] = [];
    spawned.records.launchOrder = ({ poolOwner }) => {
      written.push(poolOwner.user);
      return new Promise((_, reject) => {
        refuse.push(() => reject(new Error('not now')));
      });
    };
    const order = (user: string): LaunchOrder => {
      const made = anOrder();
      return { ...made, record: { ...made.record, poolOwner: { ...ALICE, user } } };
    };
    const launches = [...Array.from({ length: 40 }, () => 'noisy'), 'quiet'].map((user) =>
      spawned.driver.launch(order(user), permitted).catch(() => undefined),
    );
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    await turn();
    expect(written).to.deep.equal(Array.from({ length: 16 }, () => 'noisy'));

    for (const each of refuse.splice(0, 2)) each();
    await turn();
    expect(written.slice(16)).to.deep.equal(['noisy', 'quiet']);

    while (refuse.length > 0) {
      for (const each of refuse.splice(0)) each();
      await turn();
    }
    await Promise.all(launches);
    expect(written).to.have.length(41);
    expect(asked).to.equal(1);
    await spawned.close();
  });

  it('wait, 1,024 of a tenant at most; more have no place now, and keep nobody else from waiting', async () => {
    const turns = new LaunchTurns();
    const begun: Promise<() => void>[] = [];
    for (let n = 0; n < 16 + 1_024; n += 1) begun.push(turns.take(ALICE));
    expect(await rejection(turns.take(ALICE))).to.be.instanceOf(NoPlace);
    begun.push(turns.take({ ...ALICE, user: 'bob' }));

    for (const each of begun) (await each)();
    (await turns.take(ALICE))();
  });
});

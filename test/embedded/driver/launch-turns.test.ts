import { expect } from 'chai';
import { NoPlace } from '../../../src/contracts/sandbox-driver.ts';
import type { LaunchOrder } from '../../../src/model/sandbox.ts';
import { aSpawnedDriver } from '../../support/harness/a-spawned-driver.ts';
import { ALICE, anOrder, permitted } from '../../support/builders/instance-orders.ts';

describe('launches on one machine', () => {
  it("are written a few at a time, by tenant in turn, and read the machine's size once", async () => {
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

  it('are refused beyond 1,024 waiting ones of a tenant, without delaying other tenants', async () => {
    const spawned = aSpawnedDriver({});
    const letGo: (() => void)[] = [];
    spawned.records.launchOrder = () =>
      new Promise((_, reject) => {
        letGo.push(() => reject(new Error('not now')));
      });
    const launch = (user: string): Promise<unknown> => {
      const made = anOrder();
      const record = { ...made.record, poolOwner: { ...ALICE, user } };
      return spawned.driver.launch({ ...made, record }, permitted).catch((error: unknown) => error);
    };
    const launches = Array.from({ length: 16 + 1_024 }, () => launch('noisy'));
    expect(await launch('noisy')).to.be.instanceOf(NoPlace);
    launches.push(launch('quiet'));
    let isOver = false;
    const all = Promise.all(launches).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      for (const each of letGo.splice(0)) each();
      await new Promise(setImmediate);
    }
    expect((await all).some((outcome) => outcome instanceof NoPlace)).to.equal(false);
    await spawned.close();
  });
});

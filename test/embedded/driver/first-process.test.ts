import { expect } from 'chai';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { aDefinition, anOrder } from '../../support/builders/instance-orders.ts';

describe('the first process of a sandbox without a program', function () {
  let spawned: WatchedDriver;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
  });
  after(() => spawned.close());

  for (const argv of [
    ['sleep', 'infinity'],
    ['/bin/sleep', 'infinity'],
  ])
    it(`survives every signal from inside: ${argv.join(' ')}`, async () => {
      const { id } = await spawned.launched(anOrder(aDefinition({ argv })));
      await spawned.exec(id, ['sh', '-c', 'pkill sleep; pkill -9 sleep; kill -9 1']);
      for (const signal of ['TERM', 'INT', 'HUP', 'KILL', 'STOP', 'CHLD', 'SEGV', 'RTMIN'])
        await spawned.exec(id, ['sh', '-c', `kill -${signal} 1; kill -${signal} -1`]);

      expect(await spawned.sh(id, 'echo alive')).to.equal('alive\n');
      expect(spawned.log.kinds(id)).to.not.include('gone');
    });

  it('reaps orphans', async () => {
    const { id } = await spawned.launched();
    await spawned.sh(id, 'for i in 1 2 3 4 5; do (sleep 0.0$i &) ; done');

    await eventually(
      async () => !/^Name:\s+sleep/m.test(await spawned.sh(id, 'cat /proc/[0-9]*/status')),
      'no orphan is left, not even a zombie',
    );
    expect(await spawned.sh(id, 'cat /proc/1/comm')).to.equal('launcher\n');
  });
});

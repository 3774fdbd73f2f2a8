import { processesSuite } from '../../contracts/processes.ts';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver } from '../../support/harness/a-watched-driver.ts';

before(() => buildLauncher());

processesSuite('the embedded driver', async () => {
  const watched = await aWatchedDriver({ pidsMax: 512 });
  return {
    processes: watched.driver.processes,
    instance: async () => (await watched.launched()).id,
    close: () => watched.close(),
  };
});

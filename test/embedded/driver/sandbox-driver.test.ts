import { ordersOnThisMachine, sandboxDriverSuite } from '../../contracts/sandbox-driver.ts';
import { aSpawnedDriver, buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { echoServer } from '../../support/builders/echo-server.ts';

before(() => buildLauncher());

sandboxDriverSuite('embedded', async () => ({
  ...aSpawnedDriver(),
  orders: ordersOnThisMachine(echoServer),
}));

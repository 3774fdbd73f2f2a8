import { ordersOnThisMachine, sandboxDriverSuite } from '../../contracts/sandbox-driver.ts';
import { aSpawnedDriver, buildLauncher } from '../../support/a-spawned-driver.ts';
import { echoServer } from '../../support/echo-server.ts';

before(() => buildLauncher());

sandboxDriverSuite('embedded', async () => ({
  ...aSpawnedDriver(),
  orders: ordersOnThisMachine(echoServer),
}));

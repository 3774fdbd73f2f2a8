import { ordersOnThisMachine, sandboxDriverSuite } from '../../contracts/sandbox-driver.ts';
import { FakeSandboxDriver } from './fake-sandbox-driver.ts';

sandboxDriverSuite('the fake', async () => {
  const driver = new FakeSandboxDriver();
  return {
    driver,
    orders: ordersOnThisMachine((port) => ['echo-server', String(port)]),
    close: () => driver.stop(),
  };
});

import { sandboxDriverSuite } from '../contracts/sandbox-driver.ts';
import { FakeSandboxDriver } from './fake-sandbox-driver.ts';

sandboxDriverSuite('the fake', async () => {
  const driver = new FakeSandboxDriver();
  return { driver, close: () => driver.stop() };
});

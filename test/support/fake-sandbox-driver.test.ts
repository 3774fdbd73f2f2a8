import { sandboxDriverSuite } from '../contracts/sandbox-driver.ts';
import { FakeSandboxDriver } from './fake-sandbox-driver.ts';

sandboxDriverSuite('the fake', async () => {
  const driver = new FakeSandboxDriver();
  return { driver, echoServer: (port: number) => ['echo-server', String(port)], close: () => driver.stop() };
});

import type { PortConnection, SandboxDriver } from '../../../src/contracts/sandbox-driver.ts';

/** Resolves once the port accepted. */
export const dialled = async (
  driver: SandboxDriver,
  id: string,
  port: number,
  signal = new AbortController().signal,
): Promise<PortConnection> => {
  const connection = await driver.dial(id, port, signal);
  await connection.taken;
  return connection;
};

import { DaemonUnderTest } from './a-daemon.ts';
import { aTenant } from './on-a-daemon.ts';
import type { HttpClient } from './http-client.ts';

/**
 * Shared by a process's files that neither end it nor need own settings: starting one takes three
 * seconds of a processor. Its default pool is empty.
 */
let shared: Promise<DaemonUnderTest> | undefined;

/** From the suite's first hook on. Each suite uses its own teams. */
export const onTheSharedDaemon = (): (() => DaemonUnderTest) => {
  let daemon: DaemonUnderTest | undefined;
  before('the shared daemon', async () => {
    daemon = await (shared ??= DaemonUnderTest.start(['--default-pool-replicas', '0']));
  });
  return () => {
    if (daemon === undefined)
      throw new Error('there is a daemon from the first before hook on, not earlier');
    return daemon;
  };
};

/** Its team has a pool `default` of this size. */
export const aTenantWithPool = async (
  daemon: DaemonUnderTest,
  team: string,
  replicas: number,
): Promise<HttpClient> => {
  const client = await aTenant(daemon, team, 'ann');
  const pool = { name: 'default', templateName: 'default', replicas };
  const { status, text } = await client.post('/sandboxpools', pool);
  if (status !== 201) throw new Error(`the pool of ${team} was answered ${status}: ${text}`);
  return client;
};

// Mocha's root suite is current while a file is loaded, and this file is imported at its top.
after('the shared daemon', async () => {
  // or the hook that started it failed
  await (await shared?.catch(() => undefined))?.dispose();
});

import { DaemonUnderTest } from './a-daemon.ts';
import { aTenant } from './on-a-daemon.ts';
import type { HttpClient } from './http-client.ts';

/**
 * One daemon for all files of a mocha process that neither end it nor need settings of their own:
 * to start one takes three seconds of a processor. It starts with the first that asks, with no
 * instance in its default pool, and ends after the last.
 */
let shared: Promise<DaemonUnderTest> | undefined;

/** The shared daemon, from the suite's first hook on. Each suite uses teams of its own. */
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

/** A client of a team of this name, which has a pool `default` of this size. */
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

// Mocha's root suite is current while a test file is loaded, and files import this one at their
// top.
after('the shared daemon', async () => {
  // or the hook that asked for it has failed
  await (await shared?.catch(() => undefined))?.dispose();
});

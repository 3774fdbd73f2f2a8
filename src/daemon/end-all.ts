import { v7 } from 'uuid';
import { silentEvents } from '../actors/runtime/event-feed.ts';
import { Supervisor } from '../actors/sandbox/supervisor.ts';
import { loadConfig, type NamedTexts } from './config/config.ts';
import { silentLog, type Log } from '../contracts/log.ts';
import { silentMetrics } from '../contracts/metrics.ts';
import type { Records } from '../contracts/record-store.ts';
import { policyOf } from './policy.ts';
import { openEmbedded } from './embedded.ts';
import type { PoolRecord } from '../model/pools/pool.ts';

const DEADLINE_MS = 30_000;

/**
 * Ends every instance of the data folder, claimed ones as deleted by their owner. Keeps pools and
 * keys. Refuses a folder in use.
 */
export const endAll = async (
  argvOptions: NamedTexts,
  troubles: Pick<Log, 'warn' | 'error'>,
): Promise<number> => {
  const log: Log = { ...silentLog, ...troubles };
  const { config } = loadConfig({ argvOptions });
  // This starts no sandboxes, so bubblewrap may be missing.
  const parts = await openEmbedded(
    { ...config, isolation: 'none' },
    { log, replica: 'local', metrics: silentMetrics },
  );
  try {
    await parts.start();
    // Without pools, every unclaimed instance counts as a leftover and is retired.
    const supervisor = new Supervisor({
      ...parts,
      pools: noPools,
      watchers: { log, metrics: silentMetrics, events: silentEvents },
      passwords: { pullSecrets: parts.pullSecrets },
      policy: policyOf(config, parts),
      newId: () => v7(),
    });
    await supervisor.start();
    const count = supervisor.actors.size;
    for (const id of supervisor.ids())
      supervisor.send(id, { type: 'END', reason: 'deleted', now: parts.clock.now() });
    const until = parts.clock.now() + DEADLINE_MS;
    for (const id of supervisor.ids())
      await supervisor.until(id, (snapshot) => snapshot === undefined, until);
    if (supervisor.actors.size > 0)
      throw new Error(
        `${supervisor.actors.size} instances did not end in ${DEADLINE_MS / 1_000} s`,
      );
    await supervisor.stop(DEADLINE_MS);
    return count;
  } finally {
    await parts.stop();
  }
};

const refuse = (): Promise<never> => Promise.reject(new Error('this daemon has no pools'));

const noPools: Records<PoolRecord> = {
  list: async () => [],
  get: async () => undefined,
  create: refuse,
  update: refuse,
  remove: refuse,
  watch: async () => undefined,
  caughtUp: async () => undefined,
};

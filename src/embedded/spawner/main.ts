import { readdirSync, readlinkSync } from 'node:fs';
import { pathsOf } from './protocol.ts';
import { Spawner } from './spawner.ts';

/**
 * The spawner's process: `main DATA_DIR`, started through `flock`, whose descriptor it inherits and
 * keeps. Says `ready` on its standard output once a daemon can connect.
 */
const main = async (dataDir: string | undefined): Promise<void> => {
  if (!dataDir) throw new Error('called as: main DATA_DIR');
  if (!holdsLock(pathsOf(dataDir).lock)) throw new Error('the lock on the data folder is not held');
  process.title = 'sandpool-spawner';
  const spawner = new Spawner({
    dataDir,
    now: Date.now,
    random: Math.random,
    over: () => process.exit(0),
  });
  process.on('SIGTERM', () => spawner.stop());
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGPIPE'] as const) process.on(signal, () => {});
  await spawner.start();
  // The daemon reads no more if it has waited for too long: the next one connects all the same.
  process.stdout.on('error', () => {});
  process.stdout.end('ready\n');
};

const holdsLock = (lock: string): boolean =>
  readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === lock;
    } catch {
      return false;
    }
  });

await main(process.argv[2]);
